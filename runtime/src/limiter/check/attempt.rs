//! One attempt at a call: by the rules that are in force now.

mod pause;

use std::borrow::Cow;
use std::sync::Arc;
use std::{iter, slice};

use super::{Check, CheckSubjects};
use crate::call::{Awaited, Call, CallOptions, LeaseName, PlainCall, TallyId};
use crate::decision::{AdmittedAt, Charge, DecidedBy, Decision, PauseTicket, Permit, RecountTicket};
use crate::error::{BackendError, BackendErrorKind};
use crate::limiter::core::Core;
use crate::limiter::outage::StoreState;
use crate::limiter::overrides::RulesInForce;
use crate::limiter::stack::{Layers, Stack};
use crate::policy::{Policy, RuleGroup, SubjectCost, Trial, UnitCost};
use crate::store::{Answer, KnownPause, LayeredAnswer, Outcome, PauseDue, PauseMoment};
use crate::subject::SubjectKey;
use crate::system::Instant;
use crate::system::home::in_runtime;

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
    /// Where the pause of the call is kept, if the call heeds it. The rules in force may not count its subject.
    pause: Option<TallyId<'a>>,
    known: Option<KnownPause>,
    /// Has the place of the one call that is tried after a pause.
    probe: Option<PauseTicket>,
    /// When the attempt began: the store is asked after that. `None` if only this process decides.
    asked_at: Option<PauseMoment>,
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
                if let Some(decision) = self.short_decision() {
                    return Some(Ok(decision));
                }
                let decide =
                    |call: Call<'_>| Some(memory.decide(call).map(|answer| core.with_lease_here(call, answer)));
                return self.attempt_at_once(StoreState::There, decide);
            }
            Stack::Remote(layers) => layers,
        };
        let state = layers.state_for(self.policy());
        let plain = match (state, self.plain()) {
            (StoreState::AskDue, _) => return None,
            (StoreState::Away(substitute), Some(call)) => layers.decide_plain(substitute, call),
            // Most often, none of the layers decides it, and the attempt would be thrown away.
            (StoreState::There, Some(PlainCall { policy, subject, .. })) => {
                let call = Call::new(policy, slice::from_ref(subject), self.options);
                let decide = |answered: LayeredAnswer| answered.answer.outcome.decision(call, answered.decided_by);
                return layers.decide_at_once(state, call).map(|answered| answered.map(decide));
            }
            (_, None) => None,
        };
        plain.or_else(|| self.attempt_at_once(state, |call| layers.decide_at_once(state, call)))
    }

    /// Decides by the rules in force, and by what `decide` answers to the call.
    fn attempt_at_once(
        &self,
        state: StoreState,
        decide: impl FnOnce(Call<'_>) -> Option<Result<LayeredAnswer, BackendError>>,
    ) -> Option<Result<Decision, BackendError>> {
        let mut attempt = match Attempt::new(self) {
            Ok(attempt) => attempt,
            Err(mistake) => return Some(Err(mistake)),
        };
        // A cached denial does not say whether the subject is paused.
        attempt.asked_at = None;
        let has_store = state == StoreState::There && attempt.core.stack.is_remote();
        match attempt.due() {
            PauseDue::Ask if has_store => return None,
            PauseDue::Send if has_store => attempt.send_pause_again(),
            PauseDue::Ask => attempt.believe_in_pause(),
            PauseDue::Probe if !has_store => attempt.try_here(),
            PauseDue::Nothing | PauseDue::Send | PauseDue::Probe => {}
        }
        match attempt.foregone_decision() {
            // Such a denial also begins a refresh that is due, because the override may have ended. It waits for that only
            // if the rules are too old.
            Some(_) if state == StoreState::There && attempt.core.refresh_overrides().is_some() => None,
            Some(foregone) => Some(Ok(foregone)),
            None => decide(attempt.call()).map(|answered| answered.map(|answer| attempt.decision(answer))),
        }
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
            // A call of a subject that is paused asks several questions, which share one deadline.
            let until = until.or_else(|| {
                attempt.pause?;
                core.stack.store().deadline_of(&attempt.policy).map(|deadline| Instant::now() + deadline)
            });
            let awaited = until.map(|until| Awaited { caller: None, until: Some(until) });
            let call = Call { awaited: awaited.as_ref(), ..attempt.call() };
            match &core.stack {
                Stack::Here(memory) => attempt.decision(core.with_lease_here(call, memory.decide(call)?)),
                Stack::Remote(layers) => {
                    let (answered, probe) = attempt.ask(layers, call).await;
                    attempt.probe = probe;
                    match answered {
                        Ok(answered) => attempt.decision(answered),
                        // Without a runtime, no store is asked. This is a mistake, whatever is known of the store.
                        Err(reason) => in_runtime().and_then(|_| attempt.decide_without(layers, reason))?,
                    }
                }
            }
        };
        if decision.decided_by() == DecidedBy::Backend {
            self.register();
        }
        Ok(decision)
    }

    /// Decides a call that the store failed to decide, if its policy says so. A store in memory is never away.
    #[cold]
    pub(super) fn attempt_without_store(&self, reason: BackendError) -> Result<Decision, BackendError> {
        let Some(layers) = self.limiter().core.stack.layers() else { return Err(reason) };
        Attempt::new(self)?.decide_without(layers, reason)
    }

    /// Returns where the pause of the call is kept; `None` if it cannot be paused.
    pub(super) fn pause_id(&self) -> Option<TallyId<'_>> {
        let group = self.policy().pause_group()?;
        Some(TallyId { group, subject: self.inputs.paused_subject()? })
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
    /// The call left out a subject, or names a subject or a unit that the policy does not have, or one of its subjects is
    /// mistaken.
    #[inline]
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
        let in_force = Self::in_force(check, subjects.clone());
        let is_overridden = matches!(in_force.policy, Cow::Owned(_));
        Ok(iter::once(in_force).chain(is_overridden.then(|| Self::own(check, subjects))))
    }

    #[inline]
    fn in_force(check: &'a Check<'_>, subjects: Cow<'a, [SubjectKey]>) -> Self {
        // The policy of a rule in shadow already has the rules in force.
        if check.limiter().core.overrides.are_active() && !check.policy().is_trial() {
            Self::overridden(check, subjects)
        } else {
            Self::own(check, subjects)
        }
    }

    #[inline]
    fn own(check: &'a Check<'_>, subjects: Cow<'a, [SubjectKey]>) -> Self {
        Self::by_policy(check, Cow::Borrowed(check.policy()), subjects)
    }

    #[cold]
    fn overridden(check: &'a Check<'_>, subjects: Cow<'a, [SubjectKey]>) -> Self {
        let Some(in_force) = check.limiter().core.overrides.in_force(check.policy(), &subjects) else {
            return Self::own(check, subjects);
        };
        let RulesInForce { policy, subjects: chosen } = in_force;
        let other = if let Cow::Owned(other) = chosen { Some(other) } else { None };
        Self::by_policy(check, Cow::Owned(policy), other.map_or(subjects, Cow::Owned))
    }

    #[inline]
    fn by_policy(check: &'a Check<'_>, policy: Cow<'a, Policy>, subjects: Cow<'a, [SubjectKey]>) -> Self {
        let core = &check.limiter().core;
        let asked_at = Some(core.pauses.moment());
        let pause = check.pause_id().filter(|_| check.options.heeds_pause());
        let known = pause.and_then(|id| core.known_pause(id));
        let is_overridden = matches!(policy, Cow::Owned(_));
        // Only an override can close a rule, and only a policy with units has a cost in each.
        let (closed, costs) = if is_overridden || policy.has_units() {
            let given = check.inputs.costs();
            (if is_overridden { closed(&policy, &given) } else { None }, policy.costs(&given))
        } else {
            (None, Vec::new())
        };
        let is_certain = |known: &KnownPause| !matches!(known.due, PauseDue::Ask | PauseDue::Probe);
        let foregone = closed.or(known.filter(is_certain).map(KnownPause::outcome));
        let options = options_by(&policy, check.options, foregone.is_some());
        Self { core, policy, subjects, costs, options, foregone, pause, known, probe: None, asked_at }
    }

    /// Decides a call that the store failed to decide. A pause that this process knows of holds whatever the policy says.
    fn decide_without(&mut self, layers: &Layers, reason: BackendError) -> Result<Decision, BackendError> {
        if reason.kind() == BackendErrorKind::Away || layers.substitute(&self.policy, reason.kind()).is_some() {
            match self.due() {
                PauseDue::Ask => self.believe_in_pause(),
                PauseDue::Probe => self.try_here(),
                PauseDue::Nothing | PauseDue::Send => {}
            }
            if let Some(foregone) = self.foregone_decision() {
                return Ok(foregone);
            }
        }
        let decided = layers.decide_without(reason, self.call());
        match (decided, self.foregone) {
            (Ok(answered), _) => Ok(self.decision(answered)),
            (Err(_), Some(paused)) if paused.is_by_pause() => Ok(paused.decision(self.call(), DecidedBy::Backend)),
            (Err(reason), _) => Err(reason),
        }
    }

    /// Returns the call that a store decides.
    #[inline]
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
        if report && !(foregone.is_by_pause() && report_is_optional) {
            return None;
        }
        Some(foregone.decision(self.call(), DecidedBy::Backend))
    }

    fn decision(&mut self, answered: LayeredAnswer) -> Decision {
        let LayeredAnswer { answer: Answer { outcome: answered, report, at, .. }, lease, decided_by, part } = answered;
        let outcome = self.hear_and_settle(answered, decided_by);
        let pausing = match self.probe.take() {
            Some(place) if outcome != Outcome::Admitted => {
                place.deny();
                None
            }
            None if outcome == Outcome::Admitted => self.pause_ticket(),
            place => place,
        };
        let policy = part.as_ref().unwrap_or(&self.policy);
        let call = Call { policy, ..self.call() };
        if answered == Outcome::Admitted && outcome.is_by_pause() && !call.options.peek {
            self.put_back(self.ticket(call, at.clone(), decided_by));
        }
        match outcome.decision(call, decided_by) {
            Decision::Denied(denial) => Decision::Denied(denial.with_report(report)),
            Decision::Allowed(_) => {
                // If this panics in the application, the lease is given back.
                self.core.warn(call, &report);
                let refund = self.options.refundable.then(|| Box::new(self.ticket(call, at, decided_by)));
                let permit = Permit::new(decided_by, report, policy.warn_at(), refund, lease);
                Decision::Allowed(match pausing {
                    Some(pausing) => permit.with_pausing(pausing),
                    None => permit,
                })
            }
        }
    }

    /// Returns the ticket for a recount of an admitted call.
    fn ticket(&self, call: Call<'_>, at: AdmittedAt, decided_by: DecidedBy) -> RecountTicket {
        let call = match decided_by {
            DecidedBy::Nobody => return RecountTicket::of_nothing(call.peeked()),
            DecidedBy::Backend if self.core.stack.is_remote() => call.stored(),
            DecidedBy::Backend | DecidedBy::Standby => call,
        };
        RecountTicket::new(Arc::clone(self.core) as _, Charge::new(call, at, decided_by))
    }
}

/// The options by which a policy decides a call. If the outcome is known, the store is only asked for its report.
#[inline]
fn options_by(policy: &Policy, mut options: CallOptions, is_foregone: bool) -> CallOptions {
    options.peek |= is_foregone;
    options.ignores_pause |= is_foregone;
    options.lease = (policy.has_leases() && !options.peek).then(LeaseName::next);
    // A warning needs a report, for which a cached denial is enough.
    if policy.warn_at().is_some() && !is_foregone && !options.report {
        (options.report, options.report_is_optional) = (true, true);
    }
    options
}

/// The outcome of a call that an override closes by a count of 0. A unit that the call does not name may still be charged
/// later.
fn closed(policy: &Policy, given: &[UnitCost]) -> Option<Outcome> {
    let is_free = |unit: &Arc<str>| given.iter().any(|(named, cost)| named == unit && *cost == 0);
    let pays = |_: usize, group: &RuleGroup| group.unit.as_ref().is_none_or(|unit| !is_free(unit));
    Outcome::closed(policy, pays)
}
