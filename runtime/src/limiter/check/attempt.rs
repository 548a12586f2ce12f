//! One attempt at a call: by the rules that are in force now.

use std::borrow::Cow;
use std::sync::Arc;
use std::{iter, slice};

use super::inputs::Inputs;
use super::{Check, CheckSubjects};
use crate::call::{Awaited, Call, CallOptions, LeaseName, PlainCall};
use crate::decision::{AdmittedAt, Charge, DecidedBy, Decision, PauseTicket, Permit, RecountTicket};
use crate::error::BackendError;
use crate::limiter::core::Core;
use crate::limiter::outage::StoreState;
use crate::limiter::overrides::RulesInForce;
use crate::limiter::pausing::paused;
use crate::limiter::stack::{Layers, Stack};
use crate::policy::{Policy, RuleGroup, SubjectCost, Trial, UnitCost};
use crate::store::{Answer, KnownPause, LayeredAnswer, Outcome};
use crate::subject::SubjectKey;

/// A call as it is decided now: by the policy in force, which may be an override's, on the subject of each of its
/// groups.
pub(super) struct Attempt<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) policy: Cow<'a, Policy>,
    subjects: Cow<'a, [SubjectKey]>,
    /// What the call costs on each of the subjects, if the policy has units.
    costs: Vec<SubjectCost>,
    pub(super) options: CallOptions,
    /// The outcome of the call, if it is known without the store: a count of 0 closes the limit, or the subject is paused.
    pub(super) foregone: Option<Outcome>,
    /// The pause of the subject, if the store is to say whether it was ended.
    doubted: Option<KnownPause>,
}

impl Check<'_> {
    /// Decides once, without waiting for admission.
    pub(super) async fn attempt(&self) -> Result<Decision, BackendError> {
        match self.attempt_in_process() {
            Some(decided) => decided,
            None => self.attempt_in_store().await,
        }
    }

    pub(super) fn attempt_in_process(&self) -> Option<Result<Decision, BackendError>> {
        let core = &self.limiter().core;
        let layers = match &core.stack {
            Stack::Here(memory) => {
                if let Some(outcome) = self.plain().and_then(|call| self.outcome_of(call)) {
                    return Some(Ok(self.plain_decision(outcome)));
                }
                let decide =
                    |call: Call<'_>| Some(memory.decide(call).map(|answer| core.with_lease_here(call, answer)));
                return self.attempt_at_once(StoreState::There, decide);
            }
            Stack::Remote(layers) => layers,
        };
        let state = layers.state_for(self.policy());
        let plain = match state {
            StoreState::LookDue => return None,
            StoreState::Away(substitute) => self.plain().and_then(|call| layers.decide_plain(substitute, call)),
            StoreState::There => None,
        };
        plain.or_else(|| self.attempt_at_once(state, |call| layers.decide_at_once(state, call)))
    }

    /// Decides by the rules in force, and by what `decide` answers to the call.
    fn attempt_at_once(
        &self,
        state: StoreState,
        decide: impl FnOnce(Call<'_>) -> Option<Result<LayeredAnswer, BackendError>>,
    ) -> Option<Result<Decision, BackendError>> {
        let attempt = match Attempt::new(self) {
            Ok(attempt) => attempt,
            Err(mistake) => return Some(Err(mistake)),
        };
        match attempt.foregone_decision() {
            // A refresh may end the override, so a flood of such denials begins refreshes like any other calls. They are
            // denied without Redis unless the known overrides are so old that every call waits for the refresh.
            Some(_) if state == StoreState::There && attempt.core.refresh_overrides().is_some() => None,
            Some(foregone) => Some(Ok(foregone)),
            None => decide(attempt.call()).map(|answered| answered.map(|answer| attempt.decision(answer))),
        }
    }

    #[inline]
    pub(super) fn outcome_of(&self, call: PlainCall<'_>) -> Option<Outcome> {
        let Stack::Here(memory) = &self.limiter().core.stack else { return None };
        // Passed one by one, so that they go in registers.
        let PlainCall { policy, subject, cost } = call;
        memory.outcome(policy, subject, cost)
    }

    /// Returns the decision on a plain call.
    #[inline]
    pub(super) fn plain_decision(&self, outcome: Outcome) -> Decision {
        outcome.decision(Call::new(self.policy(), &[], self.options), DecidedBy::Backend)
    }

    /// Returns the short form of the call, which most calls have: the policy's own rules decide it, on one subject, and
    /// it asks only for the outcome. `None` for any other.
    #[inline]
    pub(super) fn plain(&self) -> Option<PlainCall<'_>> {
        let Inputs::Borrowed { limiter, policy, subject } = self.inputs else { return None };
        let is_plain = policy.is_plain() && !self.options.asks_for_more_than_outcome();
        let is_own = !limiter.core.overrides.are_active();
        (is_plain && is_own).then_some(PlainCall { policy, subject, cost: self.options.cost })
    }

    /// Decides a call that this process cannot decide by itself. Rules in force that are too old are refreshed before.
    pub(super) async fn attempt_in_store(&self) -> Result<Decision, BackendError> {
        let core = &self.limiter().core;
        let refresh = core.refresh_overrides();
        let mut attempt = Attempt::new(self)?;
        let mut until = None;
        if let Some(refresh) = refresh {
            // Boxed, as this is rare: other calls do not carry its state.
            until = Box::pin(core.overrides.wait_for(refresh, &attempt.policy)).await?;
            attempt = Attempt::new(self)?;
        }
        let decision = if let Some(foregone) = attempt.foregone_decision() {
            foregone
        } else {
            let awaited = until.map(|until| Awaited { caller: None, until: Some(until) });
            let call = Call { awaited: awaited.as_ref(), ..attempt.call() };
            attempt.decision(match &core.stack {
                Stack::Here(memory) => core.with_lease_here(call, memory.decide(call)?),
                Stack::Remote(layers) => match layers.decide(call).await? {
                    paused if needs_report(paused.answer.outcome, call.options) => {
                        // Boxed, as this is rare.
                        Box::pin(reported(layers, call, paused)).await?
                    }
                    decided => decided,
                },
            })
        };
        if decision.decided_by() == DecidedBy::Backend {
            self.register();
        }
        Ok(decision)
    }

    /// Decides a call that the store failed to decide, if its policy says so. A store in memory is never away.
    #[cold]
    pub(super) fn attempt_without_store(&self, reason: BackendError) -> Result<Decision, BackendError> {
        let Stack::Remote(layers) = &self.limiter().core.stack else { return Err(reason) };
        let attempt = Attempt::new(self)?;
        layers.decide_without(reason, attempt.call()).map(|answered| attempt.decision(answered))
    }

    /// Lists the policy in Redis, in the background, unless this is known to be done.
    #[inline]
    fn register(&self) {
        let core = &self.limiter().core;
        let policy = self.policy().origin();
        if !core.registrations.is_done(policy) && !self.options.peek {
            core.register(policy, self.options.shadow);
        }
    }
}

impl<'a> Attempt<'a> {
    /// Finds the rules in force.
    ///
    /// # Errors
    ///
    /// The call left out a subject of its policy, or has one that the policy does not know, or there is no policy.
    pub(super) fn new(check: &'a Check<'_>) -> Result<Self, BackendError> {
        Ok(Self::in_force(check, check.inputs.subjects()?))
    }

    /// Returns attempts for some of the subjects: by the rules in force and, as an override may use other tallies, by
    /// the policy's own.
    ///
    /// # Errors
    ///
    /// Fails as [`new`](Self::new) does. For the main subject, the call may leave out the others.
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
        // The policy of a rule in shadow already has the rules in force.
        if check.limiter().core.overrides.are_active() && !check.policy().is_trial() {
            Self::overridden(check, subjects)
        } else {
            Self::own(check, subjects)
        }
    }

    fn own(check: &'a Check<'_>, subjects: &'a [SubjectKey]) -> Self {
        Self::by_policy(check, Cow::Borrowed(check.policy()), Cow::Borrowed(subjects))
    }

    #[cold]
    fn overridden(check: &'a Check<'_>, subjects: &'a [SubjectKey]) -> Self {
        match check.limiter().core.overrides.in_force(check.policy(), subjects) {
            Some(RulesInForce { policy, subjects }) => Self::by_policy(check, Cow::Owned(policy), subjects),
            None => Self::own(check, subjects),
        }
    }

    fn by_policy(check: &'a Check<'_>, policy: Cow<'a, Policy>, subjects: Cow<'a, [SubjectKey]>) -> Self {
        let mut options = check.options;
        let core = &check.limiter().core;
        let known = core.known_pause(Call::new(&policy, &subjects, options));
        let closed = closed(&policy, matches!(policy, Cow::Owned(_)), check.inputs.costs());
        let (doubted, known) = (known.filter(|known| known.is_doubted), known.filter(|known| !known.is_doubted));
        let foregone = closed.or(known.map(paused));
        // Such a call charges nothing: the store is only asked for a report.
        options.peek |= foregone.is_some();
        options.ignores_pause |= foregone.is_some();
        options.lease = (policy.has_leases() && !options.peek).then(LeaseName::next);
        // A warning needs a report, for which a cached denial is enough.
        if policy.warn_at().is_some() && foregone.is_none() && !options.report {
            (options.report, options.report_is_optional) = (true, true);
        }
        let costs = policy.costs(check.inputs.costs());
        Self { core, policy, subjects, costs, options, foregone, doubted }
    }

    /// Returns the call that a store decides.
    pub(super) fn call(&self) -> Call<'_> {
        let groups = self.policy.groups().len();
        let enforced = self.subjects.get(..groups).unwrap_or(&self.subjects);
        let costs = self.costs.get(..groups).unwrap_or(&self.costs);
        Call::new(&self.policy, enforced, self.options).with_costs(costs)
    }

    /// The rules in shadow, each with its subject.
    pub(super) fn trials(&self) -> impl Iterator<Item = (&Trial, &SubjectKey)> {
        self.policy.trials().iter().zip(self.subjects.iter().skip(self.policy.groups().len()))
    }

    /// Returns the calls by the rules in shadow, for some of the subjects.
    pub(super) fn trial_calls(&self, subjects: CheckSubjects) -> Vec<Call<'_>> {
        let is_meant = |trial: &Trial| matches!(subjects, CheckSubjects::All) || trial.label.is_none();
        let meant = self.trials().filter(|(trial, _)| is_meant(trial));
        meant.map(|(trial, subject)| Call::new(&trial.policy, slice::from_ref(subject), CallOptions::PLAIN)).collect()
    }

    /// Returns the calls that a store decides for some of the subjects: one call for all, or one for each tally of the
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

    /// The decision without a store, if the outcome is known. A report always needs the store.
    fn foregone_decision(&self) -> Option<Decision> {
        let CallOptions { report, report_is_optional, .. } = self.options;
        let foregone = self.foregone?;
        let is_paused = matches!(foregone, Outcome::Paused { .. });
        if report && !(is_paused && report_is_optional) {
            return None;
        }
        Some(foregone.decision(self.call(), DecidedBy::Backend))
    }

    /// Returns the outcome after what the store has answered, or what decides in its place.
    fn settled_outcome(&self, outcome: Outcome, decided_by: DecidedBy) -> Outcome {
        match (self.foregone, self.doubted) {
            // The store was only asked for a report.
            (Some(foregone), _) => foregone,
            (None, Some(known)) if decided_by != DecidedBy::Backend => paused(known),
            (None, known) => {
                self.core.note_pause(self.call(), outcome, known);
                outcome
            }
        }
    }

    fn decision(&self, answered: LayeredAnswer) -> Decision {
        let LayeredAnswer { answer: Answer { outcome, report, at, .. }, lease, decided_by, part } = answered;
        let outcome = self.settled_outcome(outcome, decided_by);
        let policy = part.as_ref().unwrap_or(&self.policy);
        let call = Call { policy, ..self.call() };
        match outcome.decision(call, decided_by) {
            Decision::Denied(denial) => Decision::Denied(denial.with_report(report)),
            Decision::Allowed(_) => {
                // If this panics in the application, the lease is given back.
                self.core.warn(call, &report);
                let refund = self.options.refundable.then(|| Box::new(self.ticket(call, at, decided_by)));
                let permit = Permit::new(decided_by, report, policy.warn_at(), refund, lease);
                Decision::Allowed(if policy.longest_pause().is_some() {
                    permit.with_pausing(PauseTicket::new(Arc::clone(self.core) as _, call))
                } else {
                    permit
                })
            }
        }
    }

    /// Returns the ticket that refunds an admitted call.
    fn ticket(&self, call: Call<'_>, at: AdmittedAt, decided_by: DecidedBy) -> RecountTicket {
        let call = match (decided_by, &self.core.stack) {
            (DecidedBy::Nobody, _) => return RecountTicket::of_nothing(call.peeked()),
            (DecidedBy::Backend, Stack::Remote(_)) => call.stored(),
            (DecidedBy::Backend, Stack::Here(_)) | (DecidedBy::Standby, _) => call,
        };
        RecountTicket::new(Arc::clone(self.core) as _, Charge::new(call, at, decided_by))
    }
}

/// Whether a report is asked for that the answer does not have, because it is about a pause alone.
fn needs_report(outcome: Outcome, options: CallOptions) -> bool {
    matches!(outcome, Outcome::Paused { .. }) && options.report && !options.report_is_optional
}

/// Returns the answer to a paused call, with where its rules stand.
async fn reported(layers: &Layers, call: Call<'_>, paused: LayeredAnswer) -> Result<LayeredAnswer, BackendError> {
    let options = CallOptions { peek: true, ignores_pause: true, lease: None, ..call.options };
    let peeked = layers.decide(Call { options, ..call }).await?;
    let answer = Answer { outcome: paused.answer.outcome, ..peeked.answer };
    Ok(LayeredAnswer { answer, ..paused })
}

/// The outcome of a call that an override closes by a count of 0. A unit that the call does not name may still be charged
/// later.
fn closed(policy: &Policy, is_overridden: bool, given: &[UnitCost]) -> Option<Outcome> {
    let is_free = |unit: &Arc<str>| given.iter().any(|(named, cost)| named == unit && *cost == 0);
    let pays = |_: usize, group: &RuleGroup| group.unit.as_ref().is_none_or(|unit| !is_free(unit));
    if is_overridden { Outcome::closed(policy, pays) } else { None }
}
