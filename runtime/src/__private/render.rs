//! Rendering the placeholders of templates.

use std::fmt::{Display, Write as _};

use tallygate_rules::format_duration;

use crate::decision::{Rejection, RoundedUp};
use crate::limiter::Limiter;
use crate::subject::{Subject, filters};

/// A value that a placeholder can show.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be shown by a placeholder",
    label = "a placeholder's value is `Display`",
    note = "name a field or a method that is, like `{{user.id}}` or `{{user.name()}}`",
    note = "for an `Option`, show a default in place of `None`, like `{{name.as_deref().unwrap_or_default()}}`"
)]
pub trait Value: Display {}

#[diagnostic::do_not_recommend]
impl<T: Display + ?Sized> Value for T {}

/// Adds text of the template, which the attribute has escaped.
#[inline]
pub fn push_literal(subject: &mut Subject, text: &'static str) {
    subject.push_literal(text);
}

/// Adds the value of a placeholder.
pub fn push_value(subject: &mut Subject, value: &(impl Value + ?Sized)) {
    subject.push_value(value);
}

/// Returns the value in lower case.
pub fn lower(value: &(impl Value + ?Sized)) -> String {
    filters::lower(&filters::text_of(value))
}

/// Returns the value without white space around it.
pub fn trim(value: &(impl Value + ?Sized)) -> String {
    filters::trim(&filters::text_of(value))
}

/// Returns the value's digest, keyed with the limiter's secret.
pub fn hash(value: &(impl Value + ?Sized), limiter: &Limiter) -> String {
    limiter.secret().digest(&filters::text_of(value))
}

/// Returns the network of an address.
pub fn subnet(value: &(impl Value + ?Sized)) -> String {
    filters::subnet(&filters::text_of(value))
}

/// Adds text to a message.
pub fn push_text(message: &mut String, text: &'static str) {
    message.push_str(text);
}

/// Adds the value of a placeholder to a message, as it is.
pub fn push_shown(message: &mut String, value: &(impl Value + ?Sized)) {
    // Only the value's own `Display` can fail; what it wrote until then is its rendering.
    let _ = write!(message, "{value}");
}

/// Adds a value to a message that was rendered before the call was decided.
#[allow(clippy::needless_pass_by_value, reason = "a future that says it has it, and no borrow of it")]
pub fn push_string(message: &mut String, value: String) {
    message.push_str(&value);
}

/// Adds how long to wait: `42s`, or `never` if waiting will not help.
pub fn push_retry_after(message: &mut String, rejection: &Rejection) {
    match rejection.retry_after() {
        Some(wait) => push_shown(message, &RoundedUp(wait)),
        None => message.push_str("never"),
    }
}

/// Adds the count of the rule that denied the call.
pub fn push_count(message: &mut String, rejection: &Rejection) {
    if let Some(rule) = rejection.rule() {
        push_shown(message, &rule.count());
    }
}

/// Adds the window of the rule that denied the call: `1m`, or the schedule.
pub fn push_per(message: &mut String, rejection: &Rejection) {
    let Some(limiting) = rejection.rule() else { return };
    #[cfg(feature = "cron")]
    if let tallygate_rules::Algorithm::Cron { schedule } = limiting.rule().algorithm() {
        push_shown(message, schedule);
    }
    message.push_str(&limiting.per().map(format_duration).unwrap_or_default());
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
