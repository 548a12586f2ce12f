//! Checks of `until = "body"`.

use tallygate_rules::Role;

use crate::diagnostic::{Diagnostics, SpanRange};
use crate::model::Model;
use crate::shape::Function;

/// Reports a function whose response no framework sends.
pub(super) fn check_async(model: &Model, function: &Function, diagnostics: &mut Diagnostics) {
    if let Some(until) = model.until_body().filter(|_| function.is_blocking()) {
        let name = &function.signature.ident;
        let message = format!(
            "`until = \"body\"` is for handlers of web frameworks, and this function is not async; write `async fn {name}`, \
             or remove `until`"
        );
        diagnostics.report(until, message);
    }
}

/// Reports concurrency limits of which only some last until the body is over.
pub(super) fn check_all_end_together(model: &Model, diagnostics: &mut Diagnostics) {
    if model.until_body().is_none() {
        return;
    }
    let concurrency = model.rules.iter().filter(|rule| rule.rule.role() == Role::Concurrency);
    for rule in concurrency.filter(|rule| rule.until_body.is_none() && rule.written.complete) {
        let message = "a call ends for all of its concurrency limits together; add `until = \"body\"` to this one, too";
        diagnostics.report(rule.written.span, message);
    }
}

/// Reports a `settle` that comes before the body has used anything.
pub(super) fn check_settled_by_hand(model: &Model, diagnostics: &mut Diagnostics) {
    if let Some(settle) = model.settle.as_ref().filter(|_| model.until_body().is_some()) {
        let message = "`settle` sees the response before its body has used anything; remove it, and settle by hand at the end \
                       of the body, with `Permit::metered`";
        diagnostics.report(SpanRange::of_tokens(settle), message);
    }
}
