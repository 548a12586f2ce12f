//! The statements before the decision: they evaluate the user's expressions while all arguments are in scope.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::Expr;

use crate::diagnostic::SpanRange;
use crate::expand::context::{Expansion, borrowed, hygienic, quote_hygienic};

impl Expansion<'_> {
    pub(super) fn preparation(self) -> TokenStream {
        match &self.model.skip_if {
            Some(skip_if) => self.unless_skipped(skip_if),
            None => self.prepared_values(),
        }
    }

    /// Makes the decision one about the prepared values, if the call is not skipped.
    pub(super) fn if_not_skipped(self, decision: &TokenStream) -> TokenStream {
        let names = self.prepared_names();
        // With a refund, the decision has a value: the permit, which a skipped call does not have.
        let no_permit = self.model.refund_if.as_ref().map(|_| quote_hygienic!(else { ::core::option::Option::None }));
        quote_hygienic! {
            if let ::core::option::Option::Some(#names) = tallygate_prepared {
                #decision
            } #no_permit
        }
    }

    /// Evaluates what makes up a call: who decides, by which rules, for which subjects, with which options.
    pub(super) fn call_values(self) -> TokenStream {
        let limiter = self.named_limiter();
        let policy = self.named_policy();
        let subject = self.main_subject();
        let counts = self.counts();
        let options = self.options();
        quote_hygienic!(#limiter #policy #subject #counts #options)
    }

    fn prepared_values(self) -> TokenStream {
        let call_values = self.call_values();
        let message_values = self.message_values();
        quote_hygienic!(#call_values #message_values)
    }

    fn unless_skipped(self, skip_if: &Expr) -> TokenStream {
        let span = SpanRange::of_tokens(skip_if);
        let skip_if = self.function.in_scope(skip_if);
        let skipped = quote_spanned!(hygienic(span.last)=> (#skip_if));
        let values = self.prepared_values();
        let names = self.prepared_names();
        quote_hygienic! {
            let tallygate_prepared = if #skipped {
                ::core::option::Option::None
            } else {
                #values
                ::core::option::Option::Some(#names)
            };
        }
    }

    /// Returns the names of the prepared values, as a pattern or as a value.
    fn prepared_names(self) -> TokenStream {
        let limiter = self.model.limiter.as_ref().map(|_| quote_hygienic!(tallygate_limiter,));
        let policy = self.model.policy.as_ref().map(|_| quote_hygienic!(tallygate_policy,));
        let counts = self.has_varying_counts().then(|| quote_hygienic!(tallygate_counts,));
        let options = self.has_options().then(|| quote_hygienic!(tallygate_options,));
        let message_values = self.message_value_names();
        quote_hygienic!((#limiter #policy tallygate_subject, #counts #options #(#message_values,)*))
    }

    /// Evaluates the limiter in a statement of its own, so that no temporary of its expression lives until the await.
    fn named_limiter(self) -> TokenStream {
        let Some(limiter) = &self.model.limiter else { return TokenStream::new() };
        let private = self.private();
        let borrowed = borrowed(&self.function.in_scope(limiter), SpanRange::of_tokens(limiter));
        quote_hygienic!(let tallygate_limiter = #private::limiter([#borrowed]);)
    }

    /// Evaluates a policy that is built elsewhere.
    fn named_policy(self) -> TokenStream {
        let Some(policy) = &self.model.policy else { return TokenStream::new() };
        let private = self.private();
        let borrowed = borrowed(&self.function.in_scope(policy), SpanRange::of_tokens(policy));
        quote_hygienic!(let tallygate_policy = #private::named([#borrowed]);)
    }
}
