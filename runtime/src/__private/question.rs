//! A call, as it is decided: at once where this process can, else in a future.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::entering::{Entered, Entering};
use crate::decision::{Decision, Rejection};
use crate::limiter::{Check, Decided, Limiter};
use crate::observe::Observation;
use crate::policy::Policy;
use crate::store::CallOptions;
use crate::subject::Subject;

/// What a call is decided by. All of it is borrowed, as most calls are decided here and now.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) limiter: &'a Limiter,
    pub(super) policy: &'a Policy,
    pub(super) subject: &'a Subject,
    /// The other subjects, by their labels.
    pub(super) others: &'a [(&'static str, Subject)],
    pub(super) options: CallOptions,
}

impl<'a> Question<'a> {
    /// Decides the call. An answer that is not known yet comes out of the future that this returns.
    #[inline]
    pub(super) fn decide(self) -> Entering {
        match self.check().decide_at_once() {
            ControlFlow::Break(decided) => Entering::known(entered(self.policy, decided, self.options.shadow)),
            ControlFlow::Continue(observation) => self.wait(observation),
        }
    }

    #[cold]
    fn wait(self, observation: Observation) -> Entering {
        let (check, policy, shadow) = (self.owned_check(), self.policy.clone(), self.options.shadow);
        Entering::waiting(async move { entered(&policy, check.decide_observed(observation).await, shadow) })
    }

    #[inline]
    fn check(self) -> Check<'a> {
        let Self { limiter, policy, subject, options, .. } = self;
        let check = Check::new(limiter, policy, subject, options);
        self.with_others(check)
    }

    /// The check of a call that outlives what it is made of.
    pub(super) fn owned_check(self) -> Check<'static> {
        let Self { limiter, policy, subject, options, .. } = self;
        self.with_others(Check::owned(Cow::Owned(limiter.clone()), policy.clone(), subject, options))
    }

    #[inline]
    fn with_others(self, check: Check<'_>) -> Check<'_> {
        self.others.iter().fold(check, |check, (label, subject)| check.subject(label, subject))
    }
}

/// A call in shadow runs whatever was decided.
#[inline]
fn entered(policy: &Policy, decided: Decided, shadow: bool) -> Entered {
    match decided {
        Ok(Decision::Allowed(permit)) => Ok(Some(permit)),
        _ if shadow => Ok(None),
        Ok(Decision::Denied(denial)) => Err(denial.into()),
        Err(error) => Err(Rejection::unavailable(policy.name(), error)),
    }
}
