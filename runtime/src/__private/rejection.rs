//! The message of a rejection, and the value that the function returns for it.

use std::fmt::Write as _;
use std::sync::Arc;

use super::values::Value;
use crate::context;
use crate::decision::{Rejection, RejectionKind};
use crate::limiter::Check;

/// Adds text to a message.
pub fn push_text(message: &mut String, text: &'static str) {
    message.push_str(text);
}

/// Adds the value of a placeholder to a message.
pub fn push_shown(message: &mut String, value: &(impl Value + ?Sized)) {
    // Only the value's own `Display` can fail. The text that it wrote until then is its rendering.
    let _ = write!(message, "{value}");
}

/// Adds a value that was rendered before the call was decided.
#[allow(clippy::needless_pass_by_value, reason = "a future that says it has it, and no borrow of it")]
pub fn push_string(message: &mut String, value: String) {
    message.push_str(&value);
}

/// Adds a value of the context.
pub fn push_context(message: &mut String, name: &'static str) {
    context::show(message, name, str::to_owned);
}

/// Adds a filtered value of the context.
pub fn push_context_filtered(message: &mut String, name: &'static str, filter: impl FnOnce(&str) -> String) {
    context::show(message, name, filter);
}

/// Returns the position of the function's own rule that denied the call, or `None` if no rule did.
#[must_use]
pub fn denying_rule(rejection: &Rejection) -> Option<usize> {
    rejection.denying_rule()
}

/// Returns whether a ban rejected the call.
#[must_use]
pub fn is_ban(rejection: &Rejection) -> bool {
    rejection.kind() == RejectionKind::Banned
}

/// Gives the check of a companion the messages of its function.
pub fn with_messages(
    check: Check<'static>,
    messages: impl Fn(Rejection) -> Rejection + Send + Sync + 'static,
) -> Check<'static> {
    check.reworded_by(Arc::new(messages))
}

/// Converts the rejection into the function's result by the user's `reject`.
pub fn reject<T>(rejection: Rejection, reject: impl FnOnce(Rejection) -> T) -> T {
    reject(rejection)
}
