//! The expansion: from the model to tokens.

mod call;
mod companion;
mod context;
mod decision;
mod document;
mod late_keys;
mod message;
mod openapi;
mod policy;
mod preparation;
mod subject;

use proc_macro2::{Ident, TokenStream};
use syn::Path;

use crate::expand::context::{ExpandedFunction, Expansion};
use crate::model::Model;
use crate::shape::{Additions, Function};

/// Returns the function with its check, its companion, and the type with its responses.
pub(crate) fn expand(model: &Model, function: &Function) -> TokenStream {
    let limited = limited(model, function);
    let companion = model.check_fn.as_ref().map(|name| companion::companion(name, model, function));
    let expansion = Expansion { model, function, expanded: ExpandedFunction::Limited };
    let openapi = model.openapi.as_ref().map(|name| expansion.openapi(name));
    quote::quote!(#limited #companion #openapi)
}

/// Returns the variants of a function, each with the attribute and with the condition under which it is compiled.
pub(crate) fn expand_variants(
    attribute: &TokenStream,
    runtime: Option<&Path>,
    variants: [(TokenStream, TokenStream); 2],
) -> TokenStream {
    let runtime = context::runtime_path(runtime);
    let variants = variants
        .map(|(condition, function)| quote::quote!(#[cfg(#condition)] #[#runtime::rate_limit(#attribute)] #function));
    variants.into_iter().collect()
}

/// Returns a stub of the companion, so that a mistake in the attribute causes no further errors in its callers.
pub(crate) fn expand_stub(check_fn: &Ident, runtime: Option<&Path>, function: &Function) -> TokenStream {
    companion::stub(check_fn, runtime, function)
}

// Input:  async fn send_code(phone: &str) -> Result<(), Rejection> { body }
// Output: async fn send_code(phone: &str) -> Result<(), Rejection> {
//             let _tallygate_permit = match {
//                 enum TallygateHere {}
//                 static TALLYGATE_POLICY: PolicyCell = PolicyCell::around::<TallygateHere>("1 per 1m", &["sms:"], "sms:{phone}");
//                 TALLYGATE_POLICY.enter(&*phone)
//             }.await {
//                 Ok(tallygate_permit) => tallygate_permit,
//                 Err(tallygate_rejection) => return FromRejection::from_rejection(tallygate_rejection.with_message(…)),
//             };
//             body
//         }
// A call that has options is built before it is decided:
//                 match limiter([&self.limiter]) {
//                     tallygate_limiter => TALLYGATE_POLICY.call(&*phone).limiter(tallygate_limiter).cost([3]).enter()
//                 }
/// Returns the function with the check before its body, or before the async block at the end of its body.
///
/// All borrows of arguments end before the await, so the future is `Send` if it is so without the attribute. Of the
/// call, the future holds only what it awaits, and then the permit. It drops the permit when the body ends, by
/// `return`, `?` or a panic, too, or when the future itself is dropped. Then the call is no longer running.
fn limited(model: &Model, function: &Function) -> TokenStream {
    let expansion = Expansion { model, function, expanded: ExpandedFunction::Limited };
    function.with_additions(&Additions {
        attributes: document::attributes(model, function),
        preparation: expansion.preparation(),
        decision: expansion.decision(),
        permit: expansion.permit(),
        epilogue: expansion.epilogue(),
    })
}
