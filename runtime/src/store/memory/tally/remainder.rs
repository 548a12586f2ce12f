//! A rule of which less is left than is counted here, because the other side has counted more.

use super::{More, Tally};
use crate::decision::Remainder;
use crate::policy::RuleGroup;

impl Tally {
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
