//! Calls that memory decides by the policy's own rules, with what their permits hold: a lease, a refund, a pause.

use std::sync::Arc;

use super::Check;
use crate::call::{Call, CallOptions, PlainCall};
use crate::decision::{Charge, DecidedBy, Decision, Permit, RecountTicket};
use crate::policy::Policy;
use crate::store::{Answer, Outcome};

impl Check<'_> {
    /// Returns the decision if tallies in this process make it by the policy's own rules. `None` for any other call: an
    /// override may be in force, the subject may be paused, or a report is asked for.
    #[inline]
    pub(super) fn decision_here(&self) -> Option<Decision> {
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
