//! The mistakes in the rules of a policy.

use std::fmt;

/// The part of a rule, of a ban or of a policy that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// The rule as a whole.
    Rule,
    /// A rule's `count`.
    Count,
    /// A rule's `per`.
    Per,
    /// A rule's `capacity`.
    Capacity,
    /// A rule's `initial`.
    Initial,
    /// A rule's `reset_after`.
    ResetAfter,
    /// A rule's `lease`.
    Lease,
    /// A rule's `unit`.
    Unit,
    /// A rule's `name`.
    Name,
    /// The subject that a rule counts.
    Subject,
    /// A ban's `denials`.
    Denials,
    /// A ban's `within`.
    Within,
    /// A ban's `duration`.
    Duration,
    /// The policy's `deadline`.
    Deadline,
    /// The policy's `warn_at`.
    WarnAt,
    /// The policy's `prefetch`.
    Prefetch,
    /// The policy's `longest_pause`.
    LongestPause,
}

impl Field {
    /// Returns the names of the arguments that set this field, in the attribute and in files.
    #[must_use]
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Rule | Self::Subject => &[],
            Self::Count => &["count", "limit"],
            Self::Per => &["per", "cron"],
            Self::Capacity => &["capacity"],
            Self::Initial => &["initial"],
            Self::ResetAfter => &["reset_after"],
            Self::Lease => &["lease"],
            Self::Unit => &["unit"],
            Self::Name => &["name"],
            Self::Denials => &["denials"],
            Self::Within => &["within"],
            Self::Duration => &["duration"],
            Self::Deadline => &["deadline"],
            Self::WarnAt => &["warn_at"],
            Self::Prefetch => &["prefetch"],
            Self::LongestPause => &["longest_pause"],
        }
    }
}

/// A mistake in the rules of a policy, with its place and the remedy.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RuleError {
    position: Option<usize>,
    field: Field,
    message: String,
}

impl RuleError {
    /// Returns the position of the mistaken rule, counted from 0, or `None` if the mistake is not in a single rule.
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        self.position
    }

    /// Returns a mistake that is in no single rule, or whose position is not known yet.
    pub(crate) fn new(field: Field, message: impl Into<String>) -> Self {
        Self { position: None, field, message: message.into() }
    }

    pub(crate) fn in_rule(self, position: usize) -> Self {
        Self { position: Some(position), ..self }
    }

    pub(crate) fn moved(self, position: impl Fn(usize) -> Option<usize>) -> Self {
        Self { position: self.position.and_then(position), ..self }
    }

    /// Fails with the mistakes in the order of their rules, unless there are none.
    pub(crate) fn all_or_none(mut mistakes: Vec<Self>) -> Result<(), Vec<Self>> {
        mistakes.sort_by_key(Self::position);
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }

    /// Returns the mistaken part of the rule.
    #[must_use]
    pub fn field(&self) -> Field {
        self.field
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RuleError {}

/// Implements `Debug` by `Display`, because a program whose `main` returns an error prints it by `Debug`.
#[doc(hidden)]
#[macro_export]
macro_rules! __debug_by_display {
    ($($error:ty),+) => {
        $(impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        })+
    };
}

__debug_by_display!(RuleError);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duration::DurationError;
    use crate::text::ParseRuleError;

    fn is_error<E: std::error::Error + Clone + Eq + std::hash::Hash + Send + Sync + 'static>() {}

    #[test]
    fn every_error_can_be_a_source() {
        is_error::<RuleError>();
        is_error::<ParseRuleError>();
        is_error::<DurationError>();
        #[cfg(feature = "cron")]
        is_error::<crate::cron::ScheduleError>();
    }
}
