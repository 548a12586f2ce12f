//! The concurrent calls of a tally.

use super::{More, Tally};
use crate::call::LeaseName;
use crate::decision::Wait;
use crate::policy::RuleGroup;

/// How long a tally is kept after a concurrent call that has ended, or after a refund of all it has counted: one that calls every moment
/// keeps its tally.
const KEPT_US: u64 = 1_000_000;

impl Tally {
    pub(in super::super) fn is_running(&self) -> bool {
        self.more.as_deref().is_some_and(|more| !more.counters.leases.is_empty())
    }

    /// Keeps a tally whose calls were all refunded no longer than for a while.
    pub(super) fn end_soon(&mut self, now_us: u64) {
        self.expires_us = self.expires_us.min(now_us + KEPT_US);
    }

    /// Whether nothing counts and it is only kept, so that the next call need not make it anew: its calls were refunded, or they were
    /// concurrent and have all ended.
    pub(in super::super) fn is_idle(&self) -> bool {
        self.more.as_deref().map_or(self.log.latest_us() == 0, |more| more.counters.leases.are_over())
    }

    /// Takes a lease if the concurrency limit of the group leaves room.
    ///
    /// # Errors
    ///
    /// How long the call has to wait at most.
    #[inline]
    pub(in super::super) fn lease(&mut self, group: &RuleGroup, now_us: u64) -> Result<LeaseName, Wait> {
        // Without a limit, or without a place for leases, nothing is admitted.
        let (Some((rule, lease_us)), Some(More { counters, .. })) = (group.concurrency(), self.more.as_deref_mut())
        else {
            return Err(Wait::NEVER);
        };
        let wait = counters.leases.wait(rule.count(), lease_us, now_us);
        if !wait.is_none() {
            return Err(wait);
        }
        let name = LeaseName::next();
        self.take_lease(name, now_us);
        Ok(name)
    }

    pub(in super::super) fn has_lease(&self, name: LeaseName) -> bool {
        self.more.as_deref().is_some_and(|more| more.counters.leases.contains(name))
    }

    #[inline]
    pub(in super::super) fn take_lease(&mut self, name: LeaseName, now_us: u64) {
        if let Some(More { counters, .. }) = self.more.as_deref_mut() {
            counters.leases.take(name, now_us);
            // The tally stays as long as a call is running.
            self.expires_us = u64::MAX;
        }
    }

    /// Returns whether the lease was there.
    #[inline]
    pub(in super::super) fn give_back(&mut self, name: LeaseName) -> bool {
        let Some(More { counters, .. }) = self.more.as_deref_mut() else { return false };
        let Some(taken_us) = counters.leases.give_back(name) else { return false };
        if counters.leases.is_empty() {
            self.expires_us = taken_us + KEPT_US;
        }
        true
    }
}
