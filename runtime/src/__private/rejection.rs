//! The message of a rejection, and the value that the function returns for it.

use std::fmt::Write as _;
use std::sync::Arc;

use tallygate_rules::{amount_in_words, format_duration, unit_in_words};

use super::values::Value;
use crate::context;
use crate::decision::{Rejection, RejectionKind, RoundedUp};
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

/// Adds the time to wait: `42s`, or `never` if waiting does not help.
pub fn push_retry_after(message: &mut String, rejection: &Rejection) {
    match rejection.retry_after() {
        Some(wait) => push_shown(message, &RoundedUp(wait)),
        None => message.push_str("never"),
    }
}

/// Adds the count of the rule that denied the call, as its usual sentence says it.
pub fn push_count(message: &mut String, rejection: &Rejection) {
    if let Some(rule) = rejection.rule() {
        message.push_str(&amount_in_words(rule.rule(), rule.count()));
    }
}

/// Adds what the rule that denied the call counts: `requests`, or its unit in words.
pub fn push_unit(message: &mut String, rejection: &Rejection) {
    if let Some(rule) = rejection.rule() {
        message.push_str(&unit_in_words(rule.rule()));
    }
}

/// Adds the window of the rule that denied the call: `1m`, or the schedule. For a concurrency limit, it is the length
/// of a lease.
pub fn push_per(message: &mut String, rejection: &Rejection) {
    let Some(limiting) = rejection.rule() else { return };
    #[cfg(feature = "cron")]
    if let Some(schedule) = limiting.rule().schedule() {
        push_shown(message, schedule);
    }
    let duration = limiting.per().or_else(|| limiting.rule().lease());
    message.push_str(&duration.map(format_duration).unwrap_or_default());
}

/// Adds the name of the rule that denied the call, or the rule in words if it has none.
pub fn push_rule(message: &mut String, rejection: &Rejection) {
    if let Some(rule) = rejection.rule() {
        match rule.name() {
            Some(name) => message.push_str(name),
            None => push_shown(message, rule.rule()),
        }
    }
}

/// Returns the position of the function's own rule that denied the call, or `None` if no rule did. A rule of an
/// override that replaces no own rule gets a position that none has, so it gets no message of theirs.
#[must_use]
pub fn denying_rule(rejection: &Rejection) -> Option<usize> {
    rejection.rule().map(|rule| rule.replaced.unwrap_or(usize::MAX))
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
