//! Why a call was not admitted.

use std::fmt;
use std::time::Duration;

use tallygate_rules::{Role, Rule, format_duration};

use super::kind::RejectionKind;
use super::rounded_up::RoundedUp;
use super::rule_status::RuleStatus;
use crate::policy::Policy;

/// Why a call was not admitted: which rule denies it, and how long until it would be admitted.
#[derive(Clone, Debug)]
pub struct Denial {
    policy: Policy,
    /// The position of the rule; a ban has none.
    rule: Option<usize>,
    retry_after: Option<Duration>,
    report: Vec<RuleStatus>,
}

impl Denial {
    pub(crate) fn new(
        policy: Policy,
        rule: Option<usize>,
        retry_after: Option<Duration>,
        report: Vec<RuleStatus>,
    ) -> Self {
        Self { policy, rule, retry_after, report }
    }

    /// Returns [`RejectionKind::Duplicate`] for a repeated call, [`RejectionKind::Limited`] for too many calls,
    /// [`RejectionKind::Banned`] for a call of a banned subject.
    #[must_use]
    pub fn kind(&self) -> RejectionKind {
        match self.rule().map(|limiting| limiting.rule.role()) {
            None => RejectionKind::Banned,
            Some(Role::Duplicate) => RejectionKind::Duplicate,
            Some(_) => RejectionKind::Limited,
        }
    }

    /// Returns the policy that denied the call.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the rule that denied the call. Of several, it is the duplicate rule, or else the one with the longest
    /// wait. A ban has no rule.
    #[must_use]
    pub fn rule(&self) -> Option<LimitingRule<'_>> {
        let position = self.rule?;
        let rule = self.policy.rules().get(position)?;
        Some(LimitingRule { position, replaced: self.policy.replaced(position), rule })
    }

    /// Returns how long to wait until the same call would be admitted, if no other calls come in between.
    ///
    /// It is exact to the microsecond: the longest time of all the denying rules, or the rest of a ban if that is longer.
    /// `None` says that the call can never be admitted: it weighs more than a rule's whole count, or than a token bucket
    /// will still hold by then.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns where every rule stands, if [`Check::report`](crate::Check::report) asked for it; else nothing.
    #[must_use]
    pub fn report(&self) -> &[RuleStatus] {
        &self.report
    }
}

/// A sentence that an end user may be shown: it names no policy and no subject.
impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(limiting) = self.rule() else {
            f.write_str("too many denied requests")?;
            return self.write_wait(f);
        };
        let count = limiting.count();
        if count == 0 {
            return f.write_str("closed: no requests are admitted for now");
        }
        match (self.kind(), limiting.per()) {
            (RejectionKind::Duplicate, Some(per)) => {
                write!(f, "duplicate request: the same was made less than {} ago", format_duration(per))
            }
            (_, Some(per)) => write!(f, "too many requests: at most {count} per {}", format_duration(per)),
            (_, None) => write!(f, "too many requests: at most {count} for now"),
        }?;
        self.write_wait(f)
    }
}

impl Denial {
    fn write_wait(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.retry_after {
            Some(wait) => write!(f, "; try again in {}", RoundedUp(wait)),
            None => f.write_str("; this request alone exceeds it"),
        }
    }
}

impl std::error::Error for Denial {}

/// The rule that denied a call.
#[derive(Clone, Copy, Debug)]
pub struct LimitingRule<'a> {
    position: usize,
    /// The position of the policy's own rule that this one stands for, where an override is in force.
    replaced: Option<usize>,
    rule: &'a Rule,
}

impl<'a> LimitingRule<'a> {
    /// Returns the rule's position in its policy, counted from 0.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn replaced(&self) -> Option<usize> {
        self.replaced
    }

    /// Returns the name that the rule was given, if it was.
    #[must_use]
    pub fn name(&self) -> Option<&'a str> {
        self.rule.name()
    }

    /// Returns the greatest weight that the rule admits in its window.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.rule.count()
    }

    /// Returns the length of the rule's window, or `None` for windows that end at the ticks of a schedule.
    #[must_use]
    pub fn per(&self) -> Option<Duration> {
        self.rule.per()
    }

    /// Returns the rule itself.
    #[must_use]
    pub fn rule(&self) -> &'a Rule {
        self.rule
    }
}
