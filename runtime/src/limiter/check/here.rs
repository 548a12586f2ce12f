//! The short ways of calls that memory decides by the policy's own rules: without an attempt and, if nobody listens, without an
//! observation.

use std::sync::Arc;

use super::Check;
use super::inputs::Inputs;
use crate::call::{Call, CallOptions, PlainCall, UnitCall};
use crate::decision::{Charge, DecidedBy, Decision, Permit, RecountTicket};
use crate::limiter::Limiter;
use crate::observe::{self, Observation, Purpose};
use crate::policy::Policy;
use crate::store::{Answer, Outcome};
use crate::subject::SubjectKey;
use crate::wait::Wait;

impl Limiter {
    /// Returns the outcome of a call without options if tallies in this process decide it and nobody listens, which is the
    /// usual case. The caller makes the decision of it.
    #[inline]
    pub(crate) fn plain_outcome(&self, policy: &Policy, subject: &SubjectKey, cost: u64) -> Option<Outcome> {
        let memory = self.core.stack.here()?;
        if !policy.is_plain() || self.heeds_more_than_policy() {
            return None;
        }
        memory.outcome(policy, subject, cost)
    }

    /// Returns the permit or the denial of a call without options whose permit holds a lease or may pause its subject, where
    /// [`plain_outcome`](Self::plain_outcome) decides other calls.
    pub(crate) fn plain_permit(&self, policy: &Policy, subject: &SubjectKey) -> Option<Result<Permit, Outcome>> {
        if !policy.is_plain_with_permit() || self.heeds_more_than_policy() {
            return None;
        }
        self.core.plain_permit(PlainCall { policy, subject, cost: 1 })
    }

    /// Whether somebody listens to a call, or others than its policy have a say in it.
    #[inline]
    fn heeds_more_than_policy(&self) -> bool {
        observe::has_listeners() || Observation::is_heard(Purpose::Call) || self.core.overrides.are_active()
    }
}

impl Check<'_> {
    /// Returns the [plain outcome](Limiter::plain_outcome) if the call has no options.
    #[inline]
    pub(super) fn outcome_at_once(&self) -> Option<Outcome> {
        let Inputs::Borrowed { limiter, policy, subject, .. } = self.inputs else { return None };
        let CallOptions { cost, shadow, wait, .. } = self.options;
        let asks_more = self.options.asks_for_more_than_outcome() || shadow || wait.is_some();
        if asks_more { None } else { limiter.plain_outcome(policy, subject, cost) }
    }

    /// Returns the outcome of a call in [units](Self::in_units) if the call has no options and nobody listens.
    pub(super) fn outcome_in_units_at_once(&self) -> Option<Outcome> {
        let call = self.in_units()?;
        let memory = self.limiter().core.stack.here()?;
        if self.asks_more_than_memory() { None } else { memory.outcome_in_units(call) }
    }

    /// Returns the decision that memory makes [by itself](Self::decision_here) if nobody listens.
    pub(super) fn decision_here_at_once(&self) -> Option<Decision> {
        if self.asks_more_than_memory() {
            return None;
        }
        match self.inputs.messages() {
            // Most calls have none, and their decisions are not moved.
            None => self.decision_here(),
            Some(_) => match self.decision_here()? {
                Decision::Denied(denial) => Some(Decision::Denied(self.reworded(denial))),
                admitted @ Decision::Allowed(_) => Some(admitted),
            },
        }
    }

    fn asks_more_than_memory(&self) -> bool {
        let CallOptions { shadow, wait, .. } = self.options;
        shadow || wait.is_some() || self.limiter().heeds_more_than_policy()
    }

    /// Returns the decision on a call to which somebody listens, by the first of the short ways that it may go; `None` if it
    /// needs an attempt.
    pub(super) fn short_decision(&self) -> Option<Decision> {
        let memory = self.limiter().core.stack.here()?;
        if let Some(outcome) = self.plain().and_then(|call| memory.outcome(call.policy, call.subject, call.cost)) {
            return Some(self.plain_decision(outcome));
        }
        if let Some(outcome) = self.in_units().and_then(|call| memory.outcome_in_units(call)) {
            return Some(self.decision_in_units(outcome));
        }
        self.decision_here()
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
        self.short_form(Policy::is_plain)
    }

    #[inline]
    fn short_form(&self, has_form: impl FnOnce(&Policy) -> bool) -> Option<PlainCall<'_>> {
        let Inputs::Borrowed { limiter, policy, subject, .. } = self.inputs else { return None };
        let is_plain = has_form(policy) && !self.options.asks_for_more_than_outcome();
        let is_own = !limiter.core.overrides.are_active();
        (is_plain && is_own).then_some(PlainCall { policy, subject, cost: self.options.cost })
    }

    /// Returns the decision on a call in [units](Self::in_units).
    pub(super) fn decision_in_units(&self, outcome: Outcome) -> Decision {
        let call = Call::new(self.policy(), &[], self.options);
        // The cost of a call matters only if it can never be admitted.
        if outcome.wait() == Wait::NEVER {
            let costs = self.policy().costs(&self.inputs.costs());
            return outcome.decision(call.with_costs(&costs), DecidedBy::Backend);
        }
        outcome.decision(call, DecidedBy::Backend)
    }

    /// Returns the short form of the call if it is [plain](Self::plain) but for its units; `None` for any other.
    #[inline]
    fn in_units(&self) -> Option<UnitCall<'_>> {
        let Inputs::Borrowed { limiter, policy, subject, named } = self.inputs else { return None };
        let is_plain = policy.is_plain_in_units() && !self.options.asks_for_more_than_outcome();
        let is_own = !limiter.core.overrides.are_active();
        (is_plain && is_own).then(|| UnitCall::new(policy, subject, self.options.cost, named))
    }

    /// Returns the decision if tallies in this process make it by the policy's own rules. `None` for any other call: an
    /// override may be in force, the subject may be paused, or a report is asked for.
    #[inline]
    fn decision_here(&self) -> Option<Decision> {
        if let Some(call) = self.with_permit() {
            let decided = self.limiter().core.plain_permit(call)?;
            return Some(decided.map_or_else(|denied| self.plain_decision(denied), Decision::Allowed));
        }
        self.counted_here()
    }

    /// Returns the short form of a call whose permit holds a lease or may pause its subject; `None` for any other.
    #[inline]
    fn with_permit(&self) -> Option<PlainCall<'_>> {
        // A call that costs nothing takes no lease.
        self.short_form(Policy::is_plain_with_permit).filter(|call| call.cost > 0)
    }

    /// Returns the decision on a call of several subjects or units, or on one that may be refunded.
    // A function of its own, so that a call with a lease does not contain its code.
    #[inline(never)]
    fn counted_here(&self) -> Option<Decision> {
        let (core, policy) = (&self.limiter().core, self.policy());
        let memory = core.stack.here()?;
        let CallOptions { report, peek, refundable, .. } = self.options;
        if report || peek || !policy.is_counted() || core.overrides.are_active() {
            return None;
        }
        let pause = self.pause_id().filter(|_| self.options.heeds_pause());
        if pause.is_some_and(|id| core.known_pause(id).is_some()) {
            return None;
        }
        // A mistake of the caller is told by the long way.
        let subjects = self.inputs.subjects().ok()?;
        let costs = if policy.has_units() { policy.costs(&self.inputs.costs()) } else { Vec::new() };
        let call = Call::new(policy, &subjects, self.options).with_costs(&costs);
        let Answer { outcome, at, .. } = memory.decide(call).ok()?;
        if outcome != Outcome::Admitted {
            return Some(outcome.decision(call, DecidedBy::Backend));
        }
        let refund = refundable.then(|| {
            let charge = Charge::new(call, at, DecidedBy::Backend);
            Box::new(RecountTicket::new(Arc::clone(core) as _, charge))
        });
        let pausing = pause.map(|id| core.pause_ticket(policy, id));
        Some(Decision::Allowed(Permit::counted(DecidedBy::Backend, refund, pausing)))
    }
}
