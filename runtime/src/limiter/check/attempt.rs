//! One attempt at a call: by the rules that are in force now.

use std::borrow::Cow;
use std::sync::Arc;
use std::{iter, slice};

use super::{Check, CheckSubjects};
use crate::call::{Call, CallOptions, LeaseName};
use crate::decision::{Charge, DecidedBy, Decision, Lease, Permit, RefundTicket, Refunder};
use crate::error::BackendError;
use crate::limiter::core::Core;
use crate::limiter::standby_refunder::StandbyRefunder;
use crate::policy::{Policy, Stored, Trial};
use crate::store::{Answer, Outcome};
use crate::subject::SubjectKey;

/// A call as it is decided now: by the policy in force, its own or an override's, on the subject of each of its groups.
pub(super) struct Attempt<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) policy: Cow<'a, Policy>,
    subjects: Cow<'a, [SubjectKey]>,
    pub(super) options: CallOptions,
    /// The outcome of every call, if an override closes the limit by a count of 0.
    pub(super) closed: Option<Outcome>,
}

impl<'a> Attempt<'a> {
    /// Settles what is in force.
    ///
    /// # Errors
    ///
    /// The call left a subject of its policy out, or has one that the policy does not know, or there is no policy.
    pub(super) fn new(check: &'a Check<'_>) -> Result<Self, BackendError> {
        Ok(Self::in_force(check, check.inputs.subjects()?))
    }

    /// Attempts for some of the subjects: by the rules in force and, as an override may use other tallies, by the policy's own.
    ///
    /// # Errors
    ///
    /// As of [`new`](Self::new), but for the main subject the call may leave the others out.
    pub(super) fn in_force_and_own(
        check: &'a Check<'_>,
        subjects: CheckSubjects,
    ) -> Result<impl Iterator<Item = Self>, BackendError> {
        let subjects = match subjects {
            CheckSubjects::Main => check.inputs.subjects_filled_by_main()?,
            CheckSubjects::All => check.inputs.subjects()?,
        };
        let in_force = Self::in_force(check, subjects);
        let is_overridden = matches!(in_force.policy, Cow::Owned(_));
        Ok(iter::once(in_force).chain(is_overridden.then(|| Self::own(check, subjects))))
    }

    #[inline]
    fn in_force(check: &'a Check<'_>, subjects: &'a [SubjectKey]) -> Self {
        // A rule that is tried out has the rules in force already.
        if check.limiter().core.overrides.are_active() && !check.policy().is_trial() {
            Self::overridden(check, subjects)
        } else {
            Self::own(check, subjects)
        }
    }

    fn own(check: &'a Check<'_>, subjects: &'a [SubjectKey]) -> Self {
        Self::settled(check, Cow::Borrowed(check.policy()), Cow::Borrowed(subjects), None)
    }

    #[cold]
    fn overridden(check: &'a Check<'_>, subjects: &'a [SubjectKey]) -> Self {
        let core = &check.limiter().core;
        core.remove_expired_overrides();
        let Some(policy) = core.overrides.in_force(check.policy(), subjects) else {
            return Self::own(check, subjects);
        };
        let (subjects, closed) = (subjects_of(&policy, check.policy(), subjects), Outcome::closed(&policy));
        Self::settled(check, Cow::Owned(policy), subjects, closed)
    }

    fn settled(
        check: &'a Check<'_>,
        policy: Cow<'a, Policy>,
        subjects: Cow<'a, [SubjectKey]>,
        closed: Option<Outcome>,
    ) -> Self {
        let mut options = check.options;
        // At a closed limit there is nothing to charge, at most something to report.
        options.peek |= closed.is_some();
        options.lease = (policy.has_leases() && !options.peek).then(LeaseName::next);
        // A warning takes a report, for which a cached denial is enough.
        if policy.warn_at().is_some() && closed.is_none() && !options.report {
            (options.report, options.report_is_optional) = (true, true);
        }
        Self { core: &check.limiter().core, policy, subjects, options, closed }
    }

    /// Returns the call that a store decides.
    pub(super) fn call(&self) -> Call<'_> {
        let enforced = self.subjects.get(..self.policy.groups().len()).unwrap_or(&self.subjects);
        Call::new(&self.policy, enforced, self.options)
    }

    /// The rules that are tried out, each with its subject.
    pub(super) fn trials(&self) -> impl Iterator<Item = (&Trial, &SubjectKey)> {
        self.policy.trials().iter().zip(self.subjects.iter().skip(self.policy.groups().len()))
    }

    /// Returns the calls by the rules that are tried out, for some of the subjects.
    pub(super) fn trial_calls(&self, subjects: CheckSubjects) -> Vec<Call<'_>> {
        let is_meant = |trial: &Trial| matches!(subjects, CheckSubjects::All) || trial.label.is_none();
        let meant = self.trials().filter(|(trial, _)| is_meant(trial));
        meant.map(|(trial, subject)| Call::new(&trial.policy, slice::from_ref(subject), CallOptions::PLAIN)).collect()
    }

    /// How the store decides it, where calls are taken ahead. A store that decides at once needs none of that.
    fn prefetched(&self) -> Option<&Stored> {
        self.policy.stored().filter(|_| !self.core.store.decides_at_once())
    }

    /// The call as the store of the limiter decides it: by wider windows, where calls are taken ahead.
    pub(super) fn stored<'s>(&'s self, call: Call<'s>) -> Call<'s> {
        match self.prefetched() {
            Some(stored) => Call { policy: &stored.policy, ..call },
            None => call,
        }
    }

    /// Returns the calls that a store decides for some of the subjects: one for all of them, or one for each tally of the
    /// main subject.
    pub(super) fn calls(&self, subjects: CheckSubjects) -> Vec<Call<'_>> {
        let call = self.call();
        match subjects {
            CheckSubjects::All => vec![call],
            CheckSubjects::Main => {
                let groups = self.policy.groups().iter().enumerate();
                groups.filter(|(_, group)| group.label.is_none()).map(|(index, _)| call.part(index)).collect()
            }
        }
    }

    /// Decides a call where the store decides at once; `None` if that takes awaiting.
    pub(super) fn decide_in_process(&self) -> Result<Option<Decision>, BackendError> {
        if let Some(closed) = self.closed_decision() {
            return Ok(Some(closed));
        }
        let Some(answered) = self.core.ask_at_once(self.call()) else { return Ok(None) };
        let (answer, lease) = answered?;
        Ok(Some(self.decision(self.call(), answer, lease, DecidedBy::Backend)))
    }

    pub(super) async fn decide_in_store(&self) -> Result<Decision, BackendError> {
        if let Some(closed) = self.closed_decision() {
            return Ok(closed);
        }
        let (core, call) = (self.core, self.stored(self.call()));
        let asked_us = core.clock.now_us();
        let (answer, lease) = match self.prefetched() {
            Some(stored) => self.ask_beside_ahead(stored, call).await?,
            None => core.ask(call).await?,
        };
        core.ledgers.record(call, answer.outcome, asked_us);
        core.cached_denials.record(call, answer.outcome, asked_us);
        Ok(self.decision(call, answer, lease, DecidedBy::Backend))
    }

    /// Decides a call that this process can decide by itself while the store is there: by what it has taken ahead, or by what it
    /// knows of denials.
    pub(super) fn decide_at_once(&self) -> Option<Decision> {
        self.prefetched().and_then(|stored| self.decide_ahead(stored)).or_else(|| self.deny_at_once())
    }

    /// Denies a call of which this process knows that Redis would deny it.
    fn deny_at_once(&self) -> Option<Decision> {
        let closed = self.closed_decision();
        let is_cached = closed.is_none();
        let cached = || {
            let call = self.stored(self.call());
            Some(self.core.cached_denials.find(call)?.decision(&self.policy, self.options.cost, DecidedBy::Backend))
        };
        let denied = closed.or_else(cached)?;
        // An override may end such denials, so a flood of them refreshes the overrides like any other calls. They go on
        // meanwhile without Redis, unless the known overrides are so old that every call waits for the refresh.
        if self.core.refresh_overrides().is_some() {
            return None;
        }
        if is_cached {
            self.policy.observed().cached_denial();
        }
        Some(denied)
    }

    /// Decides a call while the store is away.
    pub(super) fn decide_by_substitute(&self, substitute: DecidedBy) -> Result<Decision, BackendError> {
        if let Some(closed) = self.closed_decision() {
            return Ok(closed);
        }
        let decided = self.core.outage.decide(substitute, self.call())?;
        let call = Call { policy: &decided.policy, options: decided.options, ..self.call() };
        let (answer, lease) = self.core.leased_at_once(call, decided.answer, substitute);
        Ok(self.decision(call, answer, lease, substitute))
    }

    /// The decision that takes no store, where an override closes the limit. A report always takes the store.
    fn closed_decision(&self) -> Option<Decision> {
        let closed = self.closed.filter(|_| !self.options.report)?;
        Some(closed.decision(&self.policy, self.options.cost, DecidedBy::Backend))
    }

    pub(super) fn decision(
        &self,
        call: Call<'_>,
        answer: Answer,
        lease: Option<Lease>,
        decided_by: DecidedBy,
    ) -> Decision {
        let Answer { outcome, report, at, .. } = answer;
        // At a closed limit, the store was asked for a report alone.
        let outcome = self.closed.unwrap_or(outcome);
        let policy = if decided_by == DecidedBy::Backend { &*self.policy } else { call.policy };
        match outcome.decision(policy, call.options.cost, decided_by) {
            Decision::Denied(denial) => Decision::Denied(denial.with_report(report)),
            Decision::Allowed(_) => {
                // The application may panic: then the lease is given back.
                self.core.warn(call, &report);
                let ticket = || RefundTicket::new(self.refunder(decided_by), Charge::new(call, at));
                let refund = call.options.refundable.then(|| Box::new(ticket()));
                Decision::Allowed(Permit::new(decided_by, report, call.policy.warn_at(), refund, lease))
            }
        }
    }

    /// Returns what takes a charge back: whatever has counted it.
    fn refunder(&self, decided_by: DecidedBy) -> Arc<dyn Refunder> {
        match decided_by {
            DecidedBy::Backend => Arc::clone(self.core) as _,
            _ => Arc::new(StandbyRefunder(Arc::clone(self.core))),
        }
    }
}

/// The subjects of a policy in force, given those of the call's own: an override may add or remove a limit on concurrent calls,
/// which is a group of its own, or a rule that is tried out.
fn subjects_of<'a>(policy: &Policy, own: &Policy, subjects: &'a [SubjectKey]) -> Cow<'a, [SubjectKey]> {
    let labels = |policy: &Policy| policy.subject_labels().map(Option::<&Arc<str>>::cloned).collect::<Vec<_>>();
    let (labels, own_labels) = (labels(policy), labels(own));
    if labels == own_labels && policy.groups().len() == own.groups().len() {
        return Cow::Borrowed(subjects);
    }
    let subject = |label| own_labels.iter().position(|own| own == label).and_then(|index| subjects.get(index));
    labels.iter().filter_map(subject).copied().collect()
}
