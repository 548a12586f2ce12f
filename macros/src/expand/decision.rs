//! The statement that awaits the decision, and returns the rejection of a denied call.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::Expr;

use crate::diagnostic::SpanRange;
use crate::expand::context::{Expansion, hygienic, quote_hygienic};

impl Expansion<'_> {
    pub(super) fn decision(self) -> TokenStream {
        let decision = self.decision_or_return();
        if self.model.skip_if.is_some() { self.if_not_skipped(&decision) } else { decision }
    }

    /// Awaits the decision, and returns if it is a rejection. With a refund, the permit is the value.
    fn decision_or_return(self) -> TokenStream {
        let awaited = self.awaited();
        let message = self.message();
        let returned = self.returned_rejection();
        let return_rejection = quote_hygienic!({
            #message
            return #returned;
        });
        if self.model.refund_if.is_none() {
            return quote_hygienic! {
                if let ::core::result::Result::Err(tallygate_rejection) = #awaited #return_rejection
            };
        }
        quote_hygienic! {
            match #awaited {
                ::core::result::Result::Ok(tallygate_permit) => tallygate_permit,
                ::core::result::Result::Err(tallygate_rejection) => #return_rejection
            }
        }
    }

    fn awaited(self) -> TokenStream {
        let private = self.private();
        let policy = self.policy();
        if self.model.limiter.is_none() && !self.has_options() {
            return quote_hygienic!(#private::enter(#policy, tallygate_subject).await);
        }
        let limiter = self.limiter();
        let options = self.options_value();
        quote_hygienic!(#private::enter_with(#policy, #limiter, tallygate_subject, #options).await)
    }

    /// Returns the value that the function returns for a rejection.
    ///
    /// All its tokens are at the result's type, so a type that cannot be made of a rejection is underlined as a whole.
    fn returned_rejection(self) -> TokenStream {
        if let Some(reject) = &self.model.reject {
            return self.rejected_by(reject);
        }
        let span = self.function.result_span();
        let runtime = self.runtime_at(hygienic(span.first));
        quote_spanned!(hygienic(span.last)=> #runtime::FromRejection::from_rejection(tallygate_rejection))
    }

    /// Calls the user's function, at its place.
    fn rejected_by(self, reject: &Expr) -> TokenStream {
        let span = SpanRange::of_tokens(reject);
        let reject = self.function.in_scope(reject);
        let private = self.private_at(hygienic(span.first));
        quote_spanned!(hygienic(span.last)=> #private::reject(tallygate_rejection, #reject))
    }
}
