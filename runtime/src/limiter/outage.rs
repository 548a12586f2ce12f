//! Decides calls while the store below is away, as the policy says: by tallies of this process, or by nobody.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tallygate_rules::OnOutage;

use crate::call::{Call, CallOptions, PlainCall};
use crate::clock::Clock;
use crate::decision::{Charge, DecidedBy, Decision, Recount, Report};
use crate::error::{BackendError, BackendErrorKind};
use crate::micros;
use crate::policy::Policy;
use crate::store::{Answer, MayBeAway, Outcome, Standby};

/// How often a call finds out, during an outage, whether it goes on. The other calls are decided by what is known.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Decides the calls of a limiter while the store below is away.
pub(super) struct Outage {
    /// The setting for policies that have none.
    default: OnOutage,
    standby: Standby,
    clock: Clock,
    /// When the next call looks.
    next_look_us: AtomicU64,
}

/// What this process knows of the store before a call asks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreState {
    /// It may decide the call.
    There,
    /// It is known to be away, and this call finds out whether it still is.
    LookDue,
    /// It is known to be away, and this decides the call.
    Away(DecidedBy),
}

/// A call as it was decided in place of the store, and the answer.
pub(super) struct Substituted<'a> {
    pub(super) policy: Cow<'a, Policy>,
    pub(super) options: CallOptions,
    pub(super) answer: Answer,
}

impl Outage {
    pub(super) fn new(on_outage: OnOutage, processes: NonZeroU64, max_subjects: usize, clock: Clock) -> Self {
        Self {
            default: on_outage,
            standby: Standby::new(clock.clone(), max_subjects, processes),
            clock,
            next_look_us: AtomicU64::new(0),
        }
    }

    /// Returns what is known of the store for a call of that policy.
    pub(super) fn state_of(&self, store: &impl MayBeAway, policy: &Policy) -> StoreState {
        let known = store.known_outage().and_then(|reason| self.substitute(policy, reason, store));
        match known {
            None => StoreState::There,
            Some(substitute) if self.is_look_due(store, substitute) => StoreState::LookDue,
            Some(substitute) => StoreState::Away(substitute),
        }
    }

    /// Returns what decides a call of that policy that the store did not decide for that reason; `None` if it is rejected.
    pub(super) fn substitute(
        &self,
        policy: &Policy,
        reason: BackendErrorKind,
        store: &impl MayBeAway,
    ) -> Option<DecidedBy> {
        match (self.on_outage(policy), reason) {
            (OnOutage::Local, BackendErrorKind::Away) => Some(DecidedBy::Standby),
            // If calls were decided before, the set-up is right.
            (OnOutage::Local, BackendErrorKind::Unknown) if store.has_decided() => Some(DecidedBy::Standby),
            (OnOutage::Allow, BackendErrorKind::Away) => Some(DecidedBy::Nobody),
            // No mistake ever admits a call.
            _ => None,
        }
    }

    /// Decides a call in place of the store.
    ///
    /// # Errors
    ///
    /// There is no room for a new subject, or the call needs more than one process may admit alone.
    pub(super) fn decide<'a>(&self, substitute: DecidedBy, call: Call<'a>) -> Result<Substituted<'a>, BackendError> {
        if substitute == DecidedBy::Nobody {
            // A peek counts nothing, so nothing is refunded.
            let options = CallOptions { peek: true, ..call.options };
            let outcome = Outcome::closed(call.policy).unwrap_or(Outcome::Admitted);
            let answer = Answer::new(outcome, Report::default(), 0);
            return Ok(Substituted { policy: Cow::Borrowed(call.policy), options, answer });
        }
        let (policy, answer) = self.standby.decide(call)?;
        Ok(Substituted { policy, options: call.options, answer })
    }

    /// Decides a plain call in place of the store; `None` for a call as [`decide`](Self::decide) decides it.
    pub(super) fn decide_plain(
        &self,
        substitute: DecidedBy,
        call: PlainCall<'_>,
    ) -> Option<Result<Decision, BackendError>> {
        if substitute == DecidedBy::Standby { self.standby.decide_plain(call) } else { None }
    }

    /// Counts a call that was admitted in place of the store as what it has used; returns whether that has changed anything.
    pub(super) fn recount(&self, charge: &Charge, recount: Recount) -> bool {
        self.standby.recount(charge, recount)
    }

    /// Gives back the leases of a call that was admitted in place of the store.
    pub(super) fn give_back(&self, leases: Call<'_>) {
        self.standby.give_back(leases);
    }

    /// Removes what this process has counted of such a call.
    pub(super) fn reset(&self, call: Call<'_>) {
        self.standby.reset(call);
    }

    /// Bans the main subject of such a call for that long, or ends its ban, if this process decides such calls in an outage.
    pub(super) fn ban(&self, call: Call<'_>, duration: Duration) -> Result<(), BackendError> {
        if self.on_outage(call.policy) == OnOutage::Local { self.standby.ban(call, duration) } else { Ok(()) }
    }

    fn on_outage(&self, policy: &Policy) -> OnOutage {
        policy.on_outage().unwrap_or(self.default)
    }

    /// Whether this call is the one to look. It also lets the tasks run that repair the connection.
    fn is_look_due(&self, store: &impl MayBeAway, substitute: DecidedBy) -> bool {
        // In a test that sets the clock, no time may pass between two calls.
        if self.clock.manual_us().is_some() || store.have_clocks_differed() {
            return true;
        }
        let now_us = match substitute {
            // To read the clock once more would take half as long as to decide: the time of the decision before is enough.
            DecidedBy::Standby => self.standby.latest_us(),
            _ => self.clock.now_us(),
        };
        let is_due = now_us >= self.next_look_us.load(Ordering::Relaxed);
        if is_due {
            self.next_look_us.store(now_us.saturating_add(micros::from_duration(LOOK_EVERY)), Ordering::Relaxed);
        }
        is_due
    }
}

#[cfg(test)]
mod tests;
