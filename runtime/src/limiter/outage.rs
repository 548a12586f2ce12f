//! Who decides while Redis is away.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tallygate_rules::OnOutage;

use crate::clock::Clock;
use crate::decision::DecidedBy;
use crate::error::BackendErrorKind;
use crate::micros;
use crate::policy::Policy;
use crate::store::{Standby, Store, have_clocks_differed};

/// How often a call finds out, during an outage, whether it goes on. The other calls are decided by what is known.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Who decides the calls of a limiter while Redis is away.
pub(super) struct Outage {
    /// The setting for policies that have none.
    default: OnOutage,
    pub(super) standby: Standby,
    clock: Clock,
    /// When the next call looks.
    next_look_us: AtomicU64,
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

    /// Returns who decides a call of that policy that the store did not decide for that reason; `None` if it is rejected.
    pub(super) fn substitute(&self, policy: &Policy, reason: BackendErrorKind, store: &Store) -> Option<DecidedBy> {
        match (self.on_outage(policy), reason) {
            (OnOutage::Local, BackendErrorKind::Away) => Some(DecidedBy::Standby),
            // If calls were decided before, the set-up is right.
            (OnOutage::Local, BackendErrorKind::Unknown) if store.has_decided() => Some(DecidedBy::Standby),
            (OnOutage::Allow, BackendErrorKind::Away) => Some(DecidedBy::Nobody),
            // No mistake ever admits a call.
            _ => None,
        }
    }

    /// Returns who decides in place of the store while it is known to be away.
    pub(super) fn known_substitute(&self, policy: &Policy, store: &Store) -> Option<DecidedBy> {
        self.substitute(policy, store.known_outage()?, store)
    }

    /// Whether this process decides such calls while Redis is away.
    pub(super) fn has_standby(&self, policy: &Policy) -> bool {
        self.on_outage(policy) == OnOutage::Local
    }

    fn on_outage(&self, policy: &Policy) -> OnOutage {
        policy.on_outage().unwrap_or(self.default)
    }

    /// Whether this call is the one to look. It also lets the tasks run that repair the connection.
    pub(super) fn is_look_due(&self, substitute: DecidedBy) -> bool {
        // In a test that sets the clock, no time may pass between two calls.
        if self.clock.manual_us().is_some() || have_clocks_differed() {
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
