//! The expression that awaits the decision, and returns the rejection of a denied call.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::Expr;

use crate::diagnostic::SpanRange;
use crate::expand::context::{Expansion, hygienic, quote_hygienic};

impl Expansion<'_> {
    /// Awaits the answer, and returns if it is a rejection. The permit is the value.
    pub(super) fn decision(self) -> TokenStream {
        let awaited = self.awaited();
        let message = self.message();
        let returned = self.returned_rejection();
        quote_hygienic! {
            match #awaited.await {
                ::core::result::Result::Ok(tallygate_permit) => tallygate_permit,
                ::core::result::Result::Err(tallygate_rejection) => {
                    #message
                    return #returned;
                }
            }
        }
    }

    /// Returns the name of the permit. Most of them are only kept, and so have a name that lints expect no use of.
    pub(super) fn permit(self) -> TokenStream {
        if self.model.is_refundable() { quote_hygienic!(tallygate_permit) } else { quote_hygienic!(_tallygate_permit) }
    }

    /// Returns the value that the function returns for a rejection.
    ///
    /// All its tokens are at the result's type, so a type that cannot be made of a rejection is underlined as a whole.
    fn returned_rejection(self) -> TokenStream {
        if let Some(reject) = &self.model.reject {
            return self.rejected_by(reject);
        }
        let span = self.function.result_span();
        if self.answers() {
            let private = self.private_at(hygienic(span.first));
            return quote_spanned!(hygienic(span.last)=> #private::rejected(tallygate_rejection));
        }
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
