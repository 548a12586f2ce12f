//! What comes before the await: the user's expressions are evaluated, and the call is decided or kept for its future.

use proc_macro2::TokenStream;
use quote::quote_spanned;

use crate::diagnostic::SpanRange;
use crate::expand::context::{Expansion, hygienic, quote_hygienic};

impl Expansion<'_> {
    /// Returns the statements that stand where all arguments are in scope, before those that await the answer.
    pub(super) fn preparation(self) -> TokenStream {
        if self.function.ends_with_async_block() {
            let call = self.with_value_names(quote_hygienic!(tallygate_call));
            let deferred = self.deferred_call();
            quote_hygienic!(let #call = #deferred;)
        } else if self.has_early_values() {
            let entering = self.with_value_names(quote_hygienic!(tallygate_entering));
            let admission = self.admission();
            quote_hygienic!(let #entering = #admission;)
        } else {
            TokenStream::new()
        }
    }

    /// Returns the answer to the call, which most functions await.
    pub(super) fn answer(self) -> TokenStream {
        let answer = if self.has_late_keys() {
            self.late_admission()
        } else if self.function.ends_with_async_block() {
            quote_hygienic!(tallygate_call.enter())
        } else if self.has_early_values() {
            quote_hygienic!(tallygate_entering)
        } else {
            self.admission()
        };
        if self.function.is_blocking() { answer } else { quote_hygienic!(#answer.await) }
    }

    /// Decides the call, at least as far as this process can.
    fn admission(self) -> TokenStream {
        let private = self.private();
        let skipped = if self.function.is_blocking() {
            quote_hygienic!(::core::result::Result::Ok(::core::option::Option::None))
        } else {
            quote_hygienic!(#private::Admission::skipped())
        };
        self.prepared(&self.entering(), &skipped)
    }

    /// Defers the call to a future of the user's own, which captures no argument for it.
    fn deferred_call(self) -> TokenStream {
        let private = self.private();
        let call = self.call();
        let deferred =
            if self.has_late_keys() { quote_hygienic!(defer_without_subject()) } else { quote_hygienic!(defer()) };
        self.prepared(&quote_hygienic!(#call.#deferred), &quote_hygienic!(#private::DeferredCall::skipped()))
    }

    /// Returns a block with what is made of the call, and the values that are rendered before it.
    ///
    /// The block drops all temporaries at its end: it has the edition of this crate, whatever that of the user.
    fn prepared(self, call: &TokenStream, skipped: &TokenStream) -> TokenStream {
        let items = self.items();
        let values = self.early_value_statements();
        let call = self.with_value_names(call.clone());
        let called = if self.has_early_values() { quote_hygienic!({ #values #call }) } else { call };
        let called = self.with_limiter(called);
        let Some(skip_if) = &self.model.skip_if else { return quote_hygienic!({ #items #called }) };
        let span = SpanRange::of_tokens(skip_if);
        let skip_if = self.function.in_scope(skip_if);
        let is_skipped = quote_spanned!(hygienic(span.last)=> (#skip_if));
        let no_values = self.no_early_values();
        let skipped = self.with_value_names(skipped.clone());
        quote_hygienic!({ #items if #is_skipped { #no_values #skipped } else { #called } })
    }

    /// Returns an expression or a pattern and behind it, if there are any, the values that are needed later.
    fn with_value_names(self, first: TokenStream) -> TokenStream {
        if !self.has_early_values() {
            return first;
        }
        let names = self.early_value_names();
        quote_hygienic!((#first, #(#names),*))
    }
}
