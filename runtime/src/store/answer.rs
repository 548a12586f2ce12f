//! What a store answers.

use std::time::Duration;

use crate::decision::{Quota, RuleStatus};
use crate::policy::Policy;

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    /// Where every rule stands afterwards, in the order of the policy; empty unless asked for.
    pub(crate) report: Vec<RuleStatus>,
    /// The time of the decision, in microseconds since 1970 by the store's clock.
    pub(crate) at_us: u64,
}

/// Whether the call was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Admitted,
    /// The position of the rule to report, and how long until the same call would be admitted: `None` is never.
    Denied {
        rule: usize,
        retry_after: Option<Duration>,
    },
    /// A subject is banned. The wait is that for the end of the ban and for the rules, whichever is longer.
    Banned {
        retry_after: Option<Duration>,
    },
}

impl Outcome {
    /// Returns the outcome with the position of its rule in the policy, given the place of the rule among the rules of
    /// all groups, one group after the other.
    #[inline]
    pub(crate) fn with_position(self, policy: &Policy) -> Self {
        match self {
            Self::Denied { rule, retry_after } => Self::Denied { rule: policy.position(rule), retry_after },
            outcome => outcome,
        }
    }
}

/// Returns the report on a policy's rules, given what is left of them in the order of the groups.
pub(crate) fn report(policy: &Policy, quotas: Vec<Quota>) -> Vec<RuleStatus> {
    let rules = policy.rules();
    let status = |(place, quota)| {
        let position = policy.position(place);
        Some(RuleStatus::new(position, rules.get(position)?.clone(), quota))
    };
    let mut report: Vec<_> = quotas.into_iter().enumerate().filter_map(status).collect();
    report.sort_by_key(RuleStatus::position);
    report
}
