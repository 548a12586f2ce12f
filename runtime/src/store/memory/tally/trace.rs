//! What a tally leaves of its subject, and counts when that returns.

use std::sync::Arc;

use super::{More, Tally};
use crate::clock;
use crate::observe::count_early_denial;
use crate::policy::{RuleGroup, TracedRules};
use crate::store::memory::counters::Counters;
use crate::store::memory::trace::{Left, RemnantTable, TraceKey};

impl Tally {
    /// Leaves a trace of what is counted of the subject. The tally has this segment. Returns whether there was room; if not, the
    /// tally has to stay.
    pub(in super::super) fn leave_trace(
        &self,
        segment: &str,
        hash: u64,
        trace: &mut RemnantTable,
        now_us: u64,
    ) -> bool {
        let counters = self.more.as_deref().map(|more| &more.counters);
        if counters.is_some_and(|counters| !counters.leave_penalties(segment, hash, trace, now_us)) {
            return false;
        }
        self.leave_counts(segment, hash, trace, now_us);
        for unit in self.all_units() {
            unit.tally.leave_counts(&unit.segment, hash, trace, now_us);
        }
        true
    }

    /// Leaves a trace of what the rules of this tally count.
    pub(in super::super) fn leave_counts(&self, segment: &str, hash: u64, trace: &mut RemnantTable, now_us: u64) {
        let counters = self.more.as_deref().map(|more| &more.counters);
        let latest_us = self.log.latest_us().max(counters.map_or(0, Counters::latest_us));
        let now_us = clock::settled(latest_us, now_us);
        if self.log.latest_us() > 0 && self.expires_us > now_us {
            // With sliding windows alone, the tally ends with the longest of them.
            let only_us = self.expires_us.saturating_sub(self.log.latest_us());
            let reach_us = counters.and_then(Counters::reach_us).unwrap_or(only_us);
            trace.add(TraceKey::new(hash, segment, 0), &self.log.remnants(reach_us, now_us), now_us);
        }
        if let Some(counters) = counters {
            counters.leave_cells(segment, hash, trace, now_us);
        }
    }

    /// Whether it counts anything that others have left.
    #[inline]
    pub(in super::super) fn counts_others(&self) -> bool {
        self.log.counts_others() || self.more.as_deref().is_some_and(|more| more.counters.counts_others())
    }

    /// Whether the rules of the group would admit a call without what others have left.
    #[cold]
    pub(in super::super) fn admits_without_others(&self, group: &RuleGroup, cost: u64, now_us: u64) -> bool {
        let by_counters = |more: &More| more.counters.admits_without_others(group, cost, now_us);
        self.log.admits_without_others(group, cost, now_us) && self.more.as_deref().is_none_or(by_counters)
    }

    /// Counts a denial of a call that needs only this tally, if it is early.
    #[inline]
    pub(in super::super) fn count_if_early(&self, group: &RuleGroup, cost: u64, now_us: u64) {
        if self.is_early(group, cost, now_us) {
            count_early_denial();
        }
    }

    /// Whether a denial of a call that needs only this tally is early.
    #[inline]
    pub(in super::super) fn is_early(&self, group: &RuleGroup, cost: u64, now_us: u64) -> bool {
        self.counts_others() && self.admits_without_others(group, cost, now_us)
    }

    /// Returns a tally of what a subject with this hash has left of this group.
    pub(in super::super) fn of_left(group: &RuleGroup, left: Left<'_>) -> Self {
        let mut tally = Self::new(group.cells());
        tally.restore(&group.segment, &group.traced, left);
        tally
    }

    /// Counts what a subject with this hash has left of these rules.
    pub(in super::super) fn restore(&mut self, segment: &str, traced: &Arc<TracedRules>, left: Left<'_>) {
        let (hash, mut trace) = (left.hash, left.trace.borrow_mut());
        if trace.is_over(left.now_us) {
            return;
        }
        let now_us = trace.settle_time(left.now_us);
        if traced.reach_us > 0 {
            let key = TraceKey::new(hash, segment, 0);
            let remnants = trace.find(key, now_us);
            let is_shared = remnants.iter().any(|remnant| remnant.is_joined);
            let own = if is_shared { trace.find_own(key, now_us) } else { remnants.clone() };
            self.log.restore(&remnants, &own, traced.reach_us, now_us);
            self.expires_us = remnants.last().map_or(0, |last| last.ends_us.min(now_us + traced.reach_us));
        }
        if let Some(More { counters, .. }) = self.more.as_deref_mut() {
            let expires_us = counters.restore(traced, segment, hash, &mut trace, now_us);
            self.expires_us = self.expires_us.max(expires_us);
        }
    }
}
