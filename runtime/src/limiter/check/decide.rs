//! The course of a decision: at once where this process can decide the call, or else by awaiting Redis or admission.

use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::{Pin, pin};

use super::Check;
use super::attempt::Attempt;
use crate::call::Call;
use crate::context;
use crate::decision::{DecidedBy, Decision, Denial, Permit, RecountTicket, Rejection, RejectionKind, Report};
use crate::error::{BackendError, BackendErrorKind};
use crate::observe::{ChargeChange, DecisionOutcome, Observation, ObservedRule, Purpose, log};
use crate::store::Outcome;

impl Check<'_> {
    /// Decides a call that this process can decide at once. For any other call, it returns the observation that has
    /// begun.
    #[inline]
    pub(crate) fn decide_at_once(&mut self) -> ControlFlow<Result<Decision, BackendError>, Observation> {
        if let Some(outcome) = self.outcome_at_once() {
            return ControlFlow::Break(Ok(self.plain_decision(outcome)));
        }
        if self.limiter().core.stack.is_remote() {
            return self.decide_observed();
        }
        match self.outcome_in_units_at_once() {
            Some(Outcome::Admitted) => ControlFlow::Break(Ok(Decision::Allowed(Permit::plain(DecidedBy::Backend)))),
            Some(denied) => ControlFlow::Break(Ok(self.decision_in_units(denied))),
            None => match self.decision_here_at_once() {
                Some(decision) => ControlFlow::Break(Ok(decision)),
                None => self.decide_observed(),
            },
        }
    }

    pub(super) fn decide_observed(&mut self) -> ControlFlow<Result<Decision, BackendError>, Observation> {
        self.ask_for_report_if_context_wants_one();
        let observation = Observation::start(self.policy().name(), self.purpose());
        let has_trials = self.may_have_trials();
        // In Redis, rules in shadow have to be awaited, too.
        let is_awaited = self.options.wait.is_some() || has_trials && self.limiter().core.stack.is_remote();
        if !is_awaited && let Some(decided) = observation.within(|| self.attempt_in_process()) {
            let decided = self.finish(&observation, decided);
            return ControlFlow::Break(if has_trials { self.decide_trials_at_once(decided) } else { decided });
        }
        ControlFlow::Continue(observation)
    }

    pub(super) fn ask_for_report_if_context_wants_one(&mut self) {
        if !self.options.report && !self.options.shadow && context::wants_reports() {
            (self.options.report, self.options.report_is_optional) = (true, true);
        }
    }

    /// Decides a call that this process cannot decide at once.
    pub(crate) async fn decide_later(&self, observation: Observation) -> Result<Decision, BackendError> {
        // Nothing was attempted yet for a call that may wait, or that has rules in shadow beside it.
        let is_attempted = self.options.wait.is_none() && !self.may_have_trials();
        let decided = if is_attempted {
            within(&observation, pin!(self.attempt_in_store())).await
        } else {
            self.decide_unobserved(&observation).await
        };
        let decided = self.finish(&observation, decided);
        if self.may_have_trials() { self.decide_trials(decided).await } else { decided }
    }

    /// Decides a call of which nothing was attempted yet. Who calls this finishes the observation.
    pub(super) async fn decide_unobserved(&self, observation: &Observation) -> Result<Decision, BackendError> {
        match self.options.wait {
            // Boxed, as few calls wait.
            Some(limit) if !self.is_shadow() => {
                within(observation, Box::pin(self.wait_for_admission(limit)).as_mut()).await
            }
            _ => within(observation, pin!(self.attempt())).await,
        }
    }

    pub(crate) async fn decide(&mut self) -> Result<Decision, BackendError> {
        match self.decide_at_once() {
            ControlFlow::Break(decided) => decided,
            ControlFlow::Continue(observation) => self.decide_later(observation).await,
        }
    }

    /// Decides a call that runs only if it is admitted, and returns as [`admitted`](Self::admitted) does.
    pub(crate) async fn admit(mut self) -> Result<Permit, Rejection> {
        let decided = match self.decide_at_once() {
            ControlFlow::Break(decided) => decided,
            // Boxed, so that the future of a call which is decided at once is small.
            ControlFlow::Continue(observation) => Box::pin(self.decide_later(observation)).await,
        };
        self.admitted(decided)
    }

    /// Returns the permit to run the call, or the rejection.
    #[inline]
    pub(crate) fn admitted(&self, decided: Result<Decision, BackendError>) -> Result<Permit, Rejection> {
        match decided {
            Ok(Decision::Allowed(permit)) => Ok(permit),
            Ok(Decision::Denied(denial)) => Err(denial.into()),
            Err(error) => Err(Rejection::unavailable(self.policy().name(), error)),
        }
    }

    #[inline]
    pub(super) fn purpose(&self) -> Purpose {
        if self.options.peek {
            Purpose::Peek
        } else if self.policy().is_trial() {
            Purpose::Trial
        } else if self.is_shadow() {
            Purpose::Shadow
        } else {
            Purpose::Call
        }
    }

    /// Whether the call runs even if it is denied: as an override says, or else a file, or else the policy or the call.
    /// It also runs if all rules are in shadow.
    #[inline]
    pub(crate) fn is_shadow(&self) -> bool {
        let is_said = self.limiter().shadow_of(self.policy()).unwrap_or(self.options.shadow);
        is_said || self.has_all_rules_in_shadow()
    }

    /// Whether all rules in force are in shadow. An override or a file may have changed the policy's own rules.
    #[inline]
    fn has_all_rules_in_shadow(&self) -> bool {
        let (overrides, own) = (&self.limiter().core.overrides, self.policy().is_all_shadow());
        let may_differ = if own { overrides.are_active() } else { overrides.any_sets_shadow() };
        if may_differ { Attempt::new(self).map_or(own, |attempt| attempt.policy.is_all_shadow()) } else { own }
    }

    /// Reports what was decided, and counts a denied subject. Returns the answer: in shadow, no call is denied.
    pub(super) fn finish(
        &self,
        observation: &Observation,
        decided: Result<Decision, BackendError>,
    ) -> Result<Decision, BackendError> {
        // Read only now, because the decision may have adopted an override.
        let purpose = self.purpose();
        self.observe(observation, purpose, &decided);
        match decided {
            decided if purpose == Purpose::Shadow => Ok(self.run_in_shadow(decided)),
            Ok(Decision::Denied(denial)) => Ok(Decision::Denied(self.reworded(denial))),
            decided => decided,
        }
    }

    /// Returns the denial with its message, if the call has messages.
    pub(super) fn reworded(&self, denial: Denial) -> Denial {
        match self.inputs.messages() {
            Some(reword) => denial.reworded(reword),
            None => denial,
        }
    }

    /// Turns a denial or an error into a permit.
    fn run_in_shadow(&self, decided: Result<Decision, BackendError>) -> Decision {
        let (decided_by, report) = match decided {
            Ok(Decision::Allowed(permit)) => return Decision::Allowed(permit),
            Ok(Decision::Denied(denial)) => (denial.decided_by(), denial.into_report()),
            Err(_) => (DecidedBy::Nobody, Report::default()),
        };
        let call = Call::new(self.policy(), &[], self.options);
        let refund = self.options.refundable.then(|| Box::new(RecountTicket::of_nothing(call)));
        let permit = Permit::new(decided_by, report, None, refund, None);
        Decision::Allowed(match self.pause_id() {
            Some(id) => permit.with_pausing(self.limiter().core.pause_ticket(self.policy(), id)),
            None => permit,
        })
    }

    fn observe(&self, observation: &Observation, purpose: Purpose, decided: &Result<Decision, BackendError>) {
        let (outcome, decided_by) = match decided {
            Ok(Decision::Allowed(permit)) => (DecisionOutcome::Allowed, permit.decided_by()),
            Ok(Decision::Denied(denial)) => {
                let rule = denial.rule().map(|rule| ObservedRule::new(rule.position(), rule.rule()));
                (DecisionOutcome::Denied { kind: denial.kind().as_str(), rule }, denial.decided_by())
            }
            Err(error) => (DecisionOutcome::Undecided(error), DecidedBy::Nobody),
        };
        observation.finish(purpose, self.policy().observed(), outcome, decided_by.as_str());
        let is_call = purpose == Purpose::Call;
        match decided {
            Ok(Decision::Allowed(permit)) if self.policy().has_units() => self.count_charged(purpose, permit),
            Ok(Decision::Denied(denial)) if is_call => self.count_denied(denial),
            Err(error) if error.kind() == BackendErrorKind::Misuse => log::misuse(self.policy().name(), error),
            Err(error) if error.kind() == BackendErrorKind::Unidentified => {
                log::unidentified(self.policy().name(), error);
            }
            _ => {}
        }
        if let (Ok(decision), true) = (decided, is_call) {
            context::decided(self.policy(), decision);
        }
    }

    /// Counts what the call was charged in units. Trials and peeks charge nothing of it.
    fn count_charged(&self, purpose: Purpose, permit: &Permit) {
        if !matches!(purpose, Purpose::Call | Purpose::Shadow) || permit.decided_by() == DecidedBy::Nobody {
            return;
        }
        for (_, unit) in self.policy().charged_units() {
            let cost = self.inputs.costs().iter().find(|(named, _)| named == unit).map_or(0, |(_, cost)| *cost);
            self.policy().observed().charged(unit, ChargeChange::Charged, cost);
        }
    }

    /// Counts a denial for the subject of the rule that it reports, if denied subjects are kept.
    fn count_denied(&self, denial: &Denial) {
        // A pause is not the subject's doing.
        if denial.kind() == RejectionKind::Paused {
            return;
        }
        let core = &self.limiter().core;
        let Some(denied) = &core.denied_subjects else { return };
        let Ok(subjects) = self.inputs.subjects() else { return };
        // A ban is on the main subject.
        let index = denial.rule().and_then(|rule| denial.policy().group_of(rule.position())).unwrap_or_default();
        let Some(group) = denial.policy().groups().get(index) else { return };
        // The groups in force may differ from the policy's own, to which the subjects belong.
        let own = self.policy().groups().iter().position(|own| own.label == group.label);
        if let Some(subject) = own.and_then(|own| subjects.get(own)) {
            denied.count(self.policy().name(), group.label.as_deref(), subject);
            core.publish_denied_soon();
        }
    }
}

/// Awaits a part of a decision inside its span.
async fn within<F: Future>(observation: &Observation, mut part: Pin<&mut F>) -> F::Output {
    poll_fn(|context| observation.within(|| part.as_mut().poll(context))).await
}
