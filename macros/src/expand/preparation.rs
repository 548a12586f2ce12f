//! The code before the await: it evaluates the user's expressions, and decides the call or keeps it for its future.

use proc_macro2::TokenStream;
use quote::quote_spanned;

use crate::diagnostic::SpanRange;
use crate::expand::context::{Expansion, hygienic, quote_hygienic};

impl Expansion<'_> {
    /// Returns the statements before those that await the answer. All arguments are in their scope.
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

    /// Returns the answer to the call, which a function awaits only if it is not known at once.
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
        if self.function.is_blocking() {
            return answer;
        }
        let private = self.private();
        // The block ends the life of the admission, so that the future has one place for it and for the permit.
        quote_hygienic! {
            {
                match #answer {
                    #private::Admission::Known(tallygate_admitted) => tallygate_admitted,
                    #private::Admission::Waiting(tallygate_waiting) => tallygate_waiting.await,
                }
            }
        }
    }

    /// Decides the call, or begins to if this process cannot decide it alone.
    fn admission(self) -> TokenStream {
        let private = self.private();
        let skipped = if self.function.is_blocking() {
            quote_hygienic!(::core::result::Result::Ok(::core::option::Option::None))
        } else {
            quote_hygienic!(#private::Admission::skipped())
        };
        self.prepared(&self.entering(), &skipped)
    }

    /// Defers the call to a future that the user wrote, which captures no argument for the call.
    fn deferred_call(self) -> TokenStream {
        let private = self.private();
        let call = self.call();
        let deferred =
            if self.has_late_keys() { quote_hygienic!(defer_without_subject()) } else { quote_hygienic!(defer()) };
        self.prepared(&quote_hygienic!(#call.#deferred), &quote_hygienic!(#private::DeferredCall::skipped()))
    }

    /// Returns a block of the call, or of `skipped`, and of the values that are rendered before the call.
    ///
    /// The block has the edition of this crate, so it drops all temporaries at its end in any edition of the user.
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

    /// Returns an expression or a pattern, followed by the values that are needed later, if there are any.
    fn with_value_names(self, first: TokenStream) -> TokenStream {
        if !self.has_early_values() {
            return first;
        }
        let names = self.early_value_names();
        quote_hygienic!((#first, #(#names),*))
    }
}
