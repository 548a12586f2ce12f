//! What a store answers.

use crate::decision::{AdmittedAt, DecidedBy, Decision, Denial, Permit, Quota, Report, RuleStatus, Wait};
use crate::policy::Policy;

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    /// Where every rule stands afterwards, in the order of the policy; empty unless asked for.
    pub(crate) report: Report,
    /// The time of the decision, by the store's clock.
    pub(crate) at: AdmittedAt,
    /// Of an answer to a part of a call, the time after which its rules would not admit the call any more.
    pub(crate) lapse: Wait,
}

impl Answer {
    /// An answer to a whole call.
    pub(crate) fn new(outcome: Outcome, report: Report, at_us: u64) -> Self {
        Self { outcome, report, at: AdmittedAt::Once(at_us), lapse: Wait::NEVER }
    }
}

/// Whether the call was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Admitted,
    /// The position of the rule to report, and how long until the same call would be admitted.
    Denied {
        rule: u32,
        retry_after: Wait,
    },
    /// A subject is banned. The wait is that for the end of the ban and for the rules, whichever is longer.
    Banned {
        retry_after: Wait,
    },
}

impl Outcome {
    /// The denial by the rule at that position.
    #[inline]
    pub(crate) fn denied(rule: usize, retry_after: Wait) -> Self {
        // A policy has far fewer rules than that.
        Self::Denied { rule: u32::try_from(rule).unwrap_or(u32::MAX), retry_after }
    }

    /// How long the call has to wait.
    pub(crate) fn wait(self) -> Wait {
        match self {
            Self::Admitted => Wait::NONE,
            Self::Denied { retry_after, .. } | Self::Banned { retry_after } => retry_after,
        }
    }

    /// Returns the decision on a call of that cost, which has asked for nothing but the outcome.
    pub(crate) fn decision(self, policy: &Policy, cost: u64, decided_by: DecidedBy) -> Decision {
        let denied = |rule, wait| Decision::Denied(Denial::new(policy, rule, wait, cost, decided_by));
        match self {
            Self::Admitted => Decision::Allowed(Permit::plain(decided_by)),
            Self::Denied { rule, retry_after } => denied(Some(rule), retry_after),
            Self::Banned { retry_after } => denied(None, retry_after),
        }
    }

    /// Returns the outcome with the position of its rule in the policy, given the place of the rule among the rules of
    /// all groups, one group after the other.
    #[inline]
    pub(crate) fn with_position(self, policy: &Policy) -> Self {
        match self {
            Self::Denied { rule, retry_after } => Self::denied(policy.position(rule as usize), retry_after),
            outcome => outcome,
        }
    }
}

/// Returns the report on a policy's rules, given what is left of them in the order of the groups, from the rule at the
/// place `first` on.
pub(crate) fn report(policy: &Policy, first: usize, quotas: Vec<Quota>) -> Report {
    let rules = policy.rules();
    let status = |(place, quota)| {
        let position = policy.position(place);
        Some(RuleStatus::new(position, rules.get(position)?.clone(), quota))
    };
    let mut report: Vec<_> = (first..).zip(quotas).filter_map(status).collect();
    report.sort_by_key(RuleStatus::position);
    report.into_iter().collect()
}
