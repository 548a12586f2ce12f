//! Changes of what a tally has counted: what a call has used, and what the other side says is left.

use super::{More, Tally};
use crate::algorithm::CostChange;
use crate::clock;
use crate::decision::Remainder;
use crate::policy::RuleGroup;

impl Tally {
    /// See [`Decider::recount`](crate::store::Decider::recount). The log of a subject that `may_have_returned` may not know the
    /// call. Then use beyond its cost counts from now on.
    pub(in super::super) fn refund(
        &mut self,
        group: &RuleGroup,
        costs: CostChange,
        admitted_us: u64,
        now_us: u64,
        may_have_returned: bool,
    ) -> bool {
        let mut changed = self.log.refund(group, costs, admitted_us, now_us);
        let beyond = costs.at_most(group.largest).beyond();
        if !changed && may_have_returned && beyond > 0 && (admitted_us..admitted_us + group.reach_us).contains(&now_us)
        {
            let late_us = self.log.latest_us().max(now_us);
            self.log.charge_late(group, beyond, late_us);
            self.expires_us = self.expires_us.max(late_us + group.reach_us);
            changed = true;
        }
        if let Some(More { counters, .. }) = self.more.as_deref_mut() {
            // What has returned may seem to be later than it was, and the clock may have gone back by little.
            let is_amended = may_have_returned && costs.beyond() > 0;
            let counted_us = if is_amended { clock::settled(counters.latest_us(), now_us) } else { now_us };
            changed |= counters.refund(group, costs, admitted_us, counted_us);
            self.expires_us = self.expires_us.max(counters.expires_us(group));
        }
        if group.is_windows && self.log.latest_us() == 0 {
            self.end_soon(now_us);
        } else {
            self.end_with_windows(group);
        }
        self.log.set_denied_until(self.plain_wait(group, now_us), None, now_us);
        changed
    }

    /// Charges what an admitted call has used of a unit in which it cost nothing, even beyond the limits; returns whether
    /// anything has changed.
    pub(in super::super) fn charge_late(&mut self, group: &RuleGroup, costs: CostChange, now_us: u64) -> bool {
        let now_us = self.settle_time(group, now_us);
        if group.largest > 0 {
            self.log.charge_late(group, costs.used, now_us);
            self.expires_us = now_us + group.reach_us;
        }
        if let Some(More { counters, .. }) = self.more.as_deref_mut() {
            // A charge of 0 begins a window that is not open; the use is then added as use beyond a cost is.
            counters.charge(group, 0, now_us);
            counters.refund(group, costs, now_us, now_us);
            self.expires_us = self.expires_us.max(counters.expires_us(group));
        }
        self.log.set_denied_until(self.plain_wait(group, now_us), None, now_us);
        true
    }

    /// Leaves at most so much of a rule; returns whether that has changed anything. Other rules count it only if they share the
    /// log, and none of them comes above its count unless it counts for a shorter time.
    pub(in super::super) fn leave(
        &mut self,
        group: &RuleGroup,
        remainder: Remainder,
        admitted_us: u64,
        now_us: u64,
    ) -> bool {
        let now_us = self.settle_time(group, now_us);
        if admitted_us > now_us {
            return false;
        }
        let Remainder { place, most, reset_us, .. } = remainder;
        let changed = match group.windows.iter().find(|window| window.place == place) {
            Some(window) => {
                let longer = group.windows.iter().filter(|other| other.per_us >= window.per_us && !other.is_duplicate);
                let room = longer.map(|other| self.log.quota(other, now_us).remaining).min().unwrap_or_default();
                let beyond = self.log.quota(window, now_us).remaining.saturating_sub(most).min(room);
                // Counted with a call that leaves the window when the other side counts anew, or not much later.
                let from_us = admitted_us.min((now_us + reset_us).saturating_sub(window.per_us));
                let to_us = (now_us + 2 * reset_us).saturating_sub(window.per_us);
                now_us < admitted_us + window.per_us && self.log.add_within(group, from_us..=to_us, beyond)
            }
            None => match self.more.as_deref_mut() {
                Some(More { counters, .. }) => {
                    let changed = counters.leave(group, remainder, admitted_us, now_us);
                    self.expires_us = self.expires_us.max(counters.expires_us(group));
                    changed
                }
                None => false,
            },
        };
        self.log.set_denied_until(self.plain_wait(group, now_us), None, now_us);
        changed
    }
}
