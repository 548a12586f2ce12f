//! What messages show of a rejection.

use std::fmt::Write as _;

use tallygate_rules::{RejectionField, amount_in_words, format_duration, unit_in_words};

use super::denial::LimitingRule;
use super::rejection::Rejection;
use crate::wait::RoundedUp;

/// Adds a value of a rejection to a message. A ban and a pause have no rule, so they show nothing of one.
pub fn push_field(message: &mut String, field: RejectionField, rejection: &Rejection) {
    match (field, rejection.rule()) {
        (RejectionField::RetryAfter, _) => push_retry_after(message, rejection),
        (_, None) => {}
        // In the words of the usual sentence, which `Denial` writes.
        (RejectionField::Count, Some(limiting)) => {
            message.push_str(&amount_in_words(limiting.rule(), limiting.count()));
        }
        (RejectionField::Unit, Some(limiting)) => message.push_str(&unit_in_words(limiting.rule())),
        (RejectionField::Per, Some(limiting)) => push_window(message, &limiting),
        (RejectionField::Rule, Some(limiting)) => push_name(message, &limiting),
    }
}

/// Adds the time to wait: `42s`, or `never` if waiting does not help.
fn push_retry_after(message: &mut String, rejection: &Rejection) {
    let _ = match rejection.retry_after() {
        Some(wait) => write!(message, "{}", RoundedUp(wait)),
        None => message.write_str("never"),
    };
}

/// Adds the window: `1m`, or the schedule. For a concurrency limit, it is the length of a lease.
fn push_window(message: &mut String, limiting: &LimitingRule<'_>) {
    #[cfg(feature = "cron")]
    if let Some(schedule) = limiting.rule().schedule() {
        let _ = write!(message, "{schedule}");
    }
    let duration = limiting.per().or_else(|| limiting.rule().lease());
    message.push_str(&duration.map(format_duration).unwrap_or_default());
}

/// Adds the name of the rule, or the rule in words if it has none.
fn push_name(message: &mut String, limiting: &LimitingRule<'_>) {
    let _ = match limiting.name() {
        Some(name) => message.write_str(name),
        None => write!(message, "{}", limiting.rule()),
    };
}

impl Rejection {
    /// Returns the position of the policy's own rule that denied the call, or `None` if no rule did. A rule of an override
    /// that replaces no own rule gets a position that none has, so it gets no message of theirs.
    pub(crate) fn denying_rule(&self) -> Option<usize> {
        self.rule().map(|limiting| limiting.replaced.unwrap_or(usize::MAX))
    }
}
