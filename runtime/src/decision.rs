//! The answer to one call: a permit, or a denial.

use std::time::Duration;

use tallygate_rules::{Role, Rule};

use crate::backend::Standing;
use crate::{Kind, Permit, Policy, Rejection};

/// The answer to one call.
#[derive(Debug)]
#[must_use = "a denied call must not go on"]
pub enum Decision {
    /// Every rule admits the call, and has counted it.
    Allowed(Permit),
    /// Some rule does not admit the call; none has counted it.
    Denied(Denial),
}

impl Decision {
    /// Returns whether the call was admitted.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    /// Returns the permit.
    ///
    /// # Errors
    ///
    /// Returns the denial as a [`Rejection`] when there is no permit.
    pub fn permit(self) -> Result<Permit, Rejection> {
        match self {
            Self::Allowed(permit) => Ok(permit),
            Self::Denied(denial) => Err(denial.into()),
        }
    }

    /// Returns where every rule stands after this decision, if [`Check::report`](crate::Check::report) asked for it;
    /// else nothing.
    #[must_use]
    pub fn report(&self) -> &[RuleReport] {
        match self {
            Self::Allowed(permit) => permit.report(),
            Self::Denied(denial) => &denial.report,
        }
    }
}

/// Where one rule stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleReport {
    index: usize,
    rule: Rule,
    standing: Standing,
}

impl RuleReport {
    pub(crate) fn new(index: usize, rule: Rule, standing: Standing) -> Self {
        Self { index, rule, standing }
    }

    /// Returns the rule's position in its policy, counted from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
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
        self.standing.remaining
    }

    /// Returns how long it takes, without further calls, until the rule is as if it had never counted.
    #[must_use]
    pub fn reset(&self) -> Duration {
        self.standing.reset
    }
}

/// Why a call was not admitted: which rule, and how long until it would be.
#[derive(Clone, Debug)]
pub struct Denial {
    policy: Policy,
    /// The position of the rule; a ban has none.
    rule: Option<usize>,
    retry_after: Option<Duration>,
    report: Vec<RuleReport>,
}

impl Denial {
    pub(crate) fn new(
        policy: Policy,
        rule: Option<usize>,
        retry_after: Option<Duration>,
        report: Vec<RuleReport>,
    ) -> Self {
        Self { policy, rule, retry_after, report }
    }

    /// Returns [`Kind::Duplicate`] for a repeated call, [`Kind::Limited`] for too many, [`Kind::Banned`] for a call of a
    /// banned subject.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.rule().map(|limiting| limiting.rule.role()) {
            None => Kind::Banned,
            Some(Role::Duplicate) => Kind::Duplicate,
            Some(_) => Kind::Limited,
        }
    }

    /// Returns the policy that denied the call.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the rule that denied the call: of several, a duplicate's first and then the one that denies longest. A ban
    /// is no rule.
    #[must_use]
    pub fn rule(&self) -> Option<LimitingRule<'_>> {
        let index = self.rule?;
        let rule = self.policy.rules().get(index)?;
        Some(LimitingRule { index, written: self.policy.written(index), rule })
    }

    /// Returns how long to wait until the same call would be admitted, other calls aside.
    ///
    /// It is exact to the microsecond: the longest time of all the denying rules. `None` says that the call can never be
    /// admitted: it weighs more than a rule's whole count, or than a token bucket will still hold by then.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// The rule that denied a call.
#[derive(Clone, Copy, Debug)]
pub struct LimitingRule<'a> {
    index: usize,
    /// The position of the rule in the policy as it was written; an override may have others.
    written: Option<usize>,
    rule: &'a Rule,
}

impl<'a> LimitingRule<'a> {
    /// Returns the rule's position in its policy, counted from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn written(&self) -> Option<usize> {
        self.written
    }

    /// Returns the name that the rule was given, if it was.
    #[must_use]
    pub fn name(&self) -> Option<&'a str> {
        self.rule.name()
    }

    /// Returns the greatest weight the rule admits in its window.
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
