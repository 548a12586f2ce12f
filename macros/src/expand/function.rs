//! The function with its check.

use proc_macro2::TokenStream;

use crate::expand::context::{Expanded, Expansion};
use crate::expand::document;
use crate::model::Model;
use crate::shape::{Additions, Function};

// Input:  async fn send_code(phone: &str) -> Result<(), Rejection> { body }
// Output: async fn send_code(phone: &str) -> Result<(), Rejection> {
//             let _tallygate_permit = match {
//                 enum TallygateHere {}
//                 static TALLYGATE_POLICY: PolicyCell = PolicyCell::around::<TallygateHere>("1 per 1m", &["sms:"]);
//                 TALLYGATE_POLICY.enter(&*phone)
//             }.await {
//                 Ok(tallygate_permit) => tallygate_permit,
//                 Err(tallygate_rejection) => return FromRejection::from_rejection(tallygate_rejection.with_message(…)),
//             };
//             body
//         }
// A call that has options is made up before it is decided:
//                 match limiter([&self.limiter]) {
//                     tallygate_limiter => TALLYGATE_POLICY.call(&*phone).limiter(tallygate_limiter).cost([3]).enter()
//                 }
/// Returns the function with the check before its body, or before the async block that its body ends with.
///
/// All borrows of arguments end before the await, so the future is `Send` if it was so without the attribute. It holds
/// nothing of the call but what it awaits, and then the permit, until the body is over: by its end, by `return` or `?`, by
/// a panic, or because the future is dropped. That is when the call is no longer running.
pub(super) fn limited(model: &Model, function: &Function) -> TokenStream {
    let expansion = Expansion { model, function, expanded: Expanded::Limited };
    function.with(&Additions {
        attributes: document::attributes(model, function),
        preparation: expansion.preparation(),
        decision: expansion.decision(),
        permit: expansion.permit(),
        epilogue: expansion.epilogue(),
    })
}
