//! What can be wrong with the rules of a policy.

use std::fmt;

/// The part of a rule that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// The rule as a whole.
    Rule,
    /// Its `count`.
    Count,
    /// Its `per`.
    Per,
    /// Its `capacity`.
    Capacity,
    /// Its `initial`.
    Initial,
    /// Its `reset_after`.
    ResetAfter,
    /// A ban's `denials`.
    Denials,
    /// A ban's `within`.
    Within,
    /// A ban's `duration`.
    Duration,
    /// Its `name`.
    Name,
}

/// A mistake in the rules of a policy: what is wrong, where, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    pub(crate) rule: Option<usize>,
    pub(crate) field: Field,
    pub(crate) message: String,
}

impl RuleError {
    /// Returns the position of the mistaken rule, or `None` when the mistake is the policy's.
    #[must_use]
    pub fn rule(&self) -> Option<usize> {
        self.rule
    }

    /// Returns the part of the rule that is mistaken.
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
