//! Where a rule stands.

use std::fmt;
use std::time::Duration;

use tallygate_rules::Rule;

use super::quota::Quota;

/// Where one rule stands: its limit, what remains of it, and when it is reset.
#[derive(Clone, PartialEq, Eq)]
pub struct RuleStatus {
    position: usize,
    rule: Rule,
    quota: Quota,
}

impl RuleStatus {
    pub(crate) fn new(position: usize, rule: Rule, quota: Quota) -> Self {
        Self { position, rule, quota }
    }

    /// Returns the rule's position in its policy, counted from 0.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the rule.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Returns the greatest cost that the rule ever admits at once: its count, or its bucket's capacity.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.rule.capacity().unwrap_or(self.rule.count())
    }

    /// Returns the greatest cost that the rule would admit now.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.quota.remaining
    }

    /// Returns how long it takes, without further calls, until the rule is as if it had never counted.
    #[must_use]
    pub fn reset(&self) -> Duration {
        self.quota.reset
    }
}

#[allow(clippy::missing_fields_in_debug, reason = "both parts of the quota are shown")]
impl fmt::Debug for RuleStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleStatus")
            .field("position", &self.position)
            .field("rule", &format_args!("{}", self.rule))
            .field("remaining", &self.remaining())
            .field("reset", &self.reset())
            .finish()
    }
}
