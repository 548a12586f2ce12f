//! What is left of a rule.

use std::time::Duration;

/// What is left of a rule at the time of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    /// The greatest cost that would be admitted now.
    pub(crate) remaining: u64,
    /// The time until the rule is as if it had never counted.
    pub(crate) reset: Duration,
}

impl Quota {
    pub(crate) fn new(remaining: u64, reset_us: u64) -> Self {
        Self { remaining, reset: Duration::from_micros(reset_us) }
    }
}
