//! The refund of a call whose result is one for which it is not to be counted.

use quote::quote_spanned;
use syn::Expr;

use crate::diagnostic::SpanRange;
use crate::expand::context::{Expansion, hygienic, quote_hygienic};
use crate::shape::Refund;

impl Expansion<'_> {
    // Input:  async fn login(user: &str) -> Result<Session, Error> { body }
    // Output: async fn login(user: &str) -> Result<Session, Error> {
    //             let tallygate_permit = { …; match enter_with(…).await { Ok(permit) => permit, Err(…) => return … } };
    //             let tallygate_result = async move {
    //                 if let Some(tallygate_result) = None::<Result<Session, Error>> { return tallygate_result; }
    //                 body
    //             }.await;
    //             let tallygate_refunded = is_refunded(&tallygate_result, Result::is_ok);
    //             if tallygate_refunded { refund(tallygate_permit).await; }
    //             tallygate_result
    //         }
    pub(super) fn refund(self, refund_if: &Expr) -> Refund {
        let private = self.private();
        let span = SpanRange::of_tokens(refund_if);
        let result_type = self.function.result_type();
        let refund_if = self.function.in_scope(refund_if);
        let private_at_span = self.private_at(hygienic(span.first));
        let is_refunded = quote_spanned! {
            hygienic(span.last)=> #private_at_span::is_refunded(&tallygate_result, #refund_if)
        };
        Refund {
            permit: quote_hygienic!(tallygate_permit),
            result: quote_hygienic!(tallygate_result),
            // Coercions and `?` need the type. This statement never returns.
            result_type: quote_hygienic! {
                if let ::core::option::Option::Some(tallygate_result) = ::core::option::Option::None::<#result_type> {
                    return tallygate_result;
                }
            },
            after: quote_hygienic! {
                let tallygate_refunded: ::core::primitive::bool = #is_refunded;
                if tallygate_refunded {
                    #private::refund(tallygate_permit).await;
                }
                tallygate_result
            },
        }
    }
}
