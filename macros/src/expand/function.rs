//! The function with its check.

use proc_macro2::TokenStream;

use crate::expand::context::{Expansion, Target};
use crate::expand::document;
use crate::model::Model;
use crate::shape::{Additions, Function};

// Input:  async fn send_code(phone: &str) -> Result<(), Rejection> { body }
// Output: async fn send_code(phone: &str) -> Result<(), Rejection> {
//             {
//                 let tallygate_limiter = …;                               // with `limiter`
//                 let mut tallygate_subject = subject();
//                 push_literal(&mut tallygate_subject, "sms:");
//                 push_value(&mut tallygate_subject, &phone);
//                 let tallygate_counts = [1, user.plan.calls()];           // with a count that varies
//                 let tallygate_options = Call::new().cost(…);             // with options of the call
//                 if let Err(tallygate_rejection) = enter({ fn rules(…) { … } static POLICY: PolicyCell = …;
//                                                           POLICY.policy() }, tallygate_subject).await {
//                     return FromRejection::from_rejection(tallygate_rejection.with_message(…));
//                 }
//             }
//             body
//         }
/// Returns the function with the check before its body, or before the async block that its body ends with.
///
/// No expression of the user's stands where an item of the expansion is visible. All borrows of arguments end before the
/// await, so the future is `Send` if it was so without the attribute.
pub(super) fn limited(model: &Model, function: &Function) -> TokenStream {
    let expansion = Expansion { model, function, target: Target::Limited };
    function.with(&Additions {
        attributes: document::attributes(model, function),
        preparation: expansion.preparation(),
        decision: expansion.decision(),
        refund: model.refund_if.as_ref().map(|refund_if| expansion.refund(refund_if)),
    })
}
