//! The log of the sliding windows of one tally: the times of admitted calls, and their weights.

mod entries;
mod remnants;

use std::ops::RangeInclusive;

use tallygate_rules::{MAX_LOG_ENTRIES, MAX_REFUND_DISTANCE};

use self::entries::{DeniedUntil, LogEntries, LogEntry};
use crate::algorithm::{CostChange, Quota, Window};
use crate::decision::Wait;
use crate::policy::RuleGroup;
use crate::store::outcome_builder::OutcomeBuilder;

/// The calls that sliding windows count, in the order of their times.
///
/// Calls of one microsecond share an entry. If [`MAX_LOG_ENTRIES`] entries count, calls that are close to each other
/// share one, too. They count from the newest of them, so no window ever admits more than its count.
///
/// Entries that no longer count change nothing, and stay until their room is needed. They are dropped before an earlier
/// entry becomes the last one: in `forget_future` and `refund`.
///
/// Sums of weights are modulo 2^32. A log weighs less than 2^32, and what counts in it at most 2^31. They begin at 0, but what
/// others have left comes before: until it has left the log, `start` is at least [`OTHERS`].
#[derive(Debug, Default)]
pub(super) struct Log {
    /// The entries before the last one.
    older: LogEntries,
    /// The last entry. If the log is empty, it weighs nothing.
    last: LogEntry,
    /// The sum of all weights.
    end: u32,
    /// The sum of the weights before the first entry.
    start: u32,
    /// Valid until the log changes.
    denied_until: DeniedUntil,
}

impl Log {
    /// The time of the last call.
    #[inline]
    pub(super) fn latest_us(&self) -> u64 {
        self.last.at_us()
    }

    /// Forgets entries that are later than now, because they would block for longer than their window.
    #[cold]
    pub(super) fn forget_future(&mut self, now_us: u64, reach_us: u64) {
        self.denied_until = DeniedUntil::default();
        self.drop_over(reach_us, self.last.at_us());
        while self.last.at_us() > now_us {
            self.end = self.last.before();
            self.last = self.older.pop().unwrap_or(LogEntry::new(0, self.end));
        }
    }

    /// Asks every window. The first rule of the group has the place `first`.
    #[inline]
    pub(super) fn ask(&self, group: &RuleGroup, first: usize, cost: u64, now_us: u64, builder: &mut OutcomeBuilder) {
        for window in &group.windows {
            let (place, wait) = (first + window.place, self.wait(window, cost, now_us));
            if window.is_duplicate { builder.add_duplicate_wait(place, wait) } else { builder.add_wait(place, wait) }
        }
    }

    /// Until when calls of cost 1 are denied, by the rules of the last call.
    pub(super) fn denied_until_us(&self) -> u64 {
        self.denied_until.us()
    }

    /// Notes how long a call of cost 1 has to wait. `only` is the window if there is no other rule.
    #[inline]
    pub(super) fn set_denied_until(&mut self, wait: Wait, only: Option<&Window>, now_us: u64) {
        self.denied_until = DeniedUntil::new(wait, only, now_us);
    }

    /// How long a call of cost 1 has to wait, if the last call has noted that for this window.
    #[inline]
    pub(super) fn known_wait(&self, window: &Window, now_us: u64) -> Option<Wait> {
        self.denied_until.wait(window, now_us)
    }

    /// How long the windows make a call of this cost wait.
    #[inline]
    pub(super) fn longest_wait(&self, windows: &[Window], cost: u64, now_us: u64) -> Wait {
        let mut longest = Wait::NONE;
        for window in windows {
            longest = longest.max(self.wait(window, cost, now_us));
        }
        longest
    }

    /// Whether the group has only sliding windows, and they admit a call of this cost at this time.
    #[inline]
    pub(super) fn has_room(&self, group: &RuleGroup, cost: u64, now_us: u64) -> bool {
        group.is_windows && self.latest_us() <= now_us && self.admits(group, cost, now_us)
    }

    /// Whether the sliding windows of the group admit a call of this cost.
    #[inline]
    pub(super) fn admits(&self, group: &RuleGroup, cost: u64, now_us: u64) -> bool {
        self.fits(group, cost) || self.fits_later(group, cost, now_us)
    }

    /// How long the sliding windows of the group make a call of cost 1 wait.
    #[inline]
    pub(super) fn plain_wait(&self, group: &RuleGroup, now_us: u64) -> Wait {
        if self.fits(group, 1) { Wait::NONE } else { self.longest_wait(&group.windows, 1, now_us) }
    }

    /// Notes whether a call of cost 1 has to wait, in a group that has only sliding windows.
    #[inline]
    pub(super) fn note_room(&mut self, group: &RuleGroup, now_us: u64) {
        self.set_denied_until(self.plain_wait(group, now_us), None, now_us);
    }

    /// Whether there is surely room for a call of this cost, even if all entries count.
    #[inline]
    fn fits(&self, group: &RuleGroup, cost: u64) -> bool {
        // A closed rule for duplicates denies also what costs nothing.
        self.weight().saturating_add(cost.max(1)) <= group.smallest
    }

    /// Whether there is room because some entries no longer count.
    #[inline(never)]
    fn fits_later(&self, group: &RuleGroup, cost: u64, now_us: u64) -> bool {
        self.longest_wait(&group.windows, cost, now_us).is_none()
    }

    /// How long this window makes a call of this cost wait.
    #[inline]
    pub(super) fn wait(&self, window: &Window, cost: u64, now_us: u64) -> Wait {
        // Any call within the window is a duplicate, whatever it costs.
        let cost = if window.is_duplicate { 1 } else { cost };
        let Some(room) = window.count.checked_sub(cost) else { return Wait::NEVER };
        if window.is_duplicate {
            Wait::until(self.last.at_us() + window.per_us, now_us)
        } else if self.weight() <= room {
            Wait::NONE
        } else {
            Wait::until(self.in_the_way_us(room) + window.per_us, now_us)
        }
    }

    /// Counts a call. A cost is greater than each count only if all windows are duplicate rules, which ignore its size.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "it has several callers, so that the compiler would not do it for plain calls"
    )]
    pub(super) fn charge(&mut self, group: &RuleGroup, cost: u64, now_us: u64) {
        let weight = weight_of(cost, group);
        if self.older.is_full() || self.weight() > u64::from(u32::MAX - weight) {
            self.make_room(group, now_us);
        }
        let weighs_nothing = self.last.before() == self.end;
        if self.last.at_us() == now_us || weighs_nothing || self.is_dense(group, now_us) {
            self.last = LogEntry::new(now_us, self.last.before());
        } else {
            self.older.push(self.last);
            self.last = LogEntry::new(now_us, self.end);
        }
        self.end = self.end.wrapping_add(weight);
    }

    /// Counts what a call has used of a unit in which it cost nothing, even beyond the limits: as much as the sums can
    /// hold.
    pub(super) fn charge_late(&mut self, group: &RuleGroup, used: u64, now_us: u64) {
        self.drop_over(group.reach_us, now_us);
        let weight = used.min(u64::from(u32::MAX) - self.weight());
        if weight > 0 {
            self.charge(group, weight, now_us);
        }
    }

    /// See [`Decider::recount`](crate::store::Decider::recount). Far from the end of the log, nothing is given back, and
    /// what was used beyond the cost counts with a later call.
    pub(super) fn refund(&mut self, group: &RuleGroup, costs: CostChange, admitted_us: u64, now_us: u64) -> bool {
        let counts = admitted_us <= now_us && now_us < admitted_us + group.reach_us;
        if !counts || self.last.at_us() < admitted_us {
            return false;
        }
        self.drop_over(group.reach_us, self.last.at_us());
        let costs = costs.at_most(group.largest);
        let index = self.older.as_slice().partition_point(|entry| entry.at_us() < admitted_us);
        let found = self.older.as_slice().get(index).unwrap_or(&self.last);
        let is_its_own = found.at_us() == admitted_us || may_share(group, found.at_us(), admitted_us);
        let distance = self.older.as_slice().len() - index;
        if !is_its_own {
            false
        } else if costs.beyond() > 0 {
            self.add(index + distance.saturating_sub(MAX_REFUND_DISTANCE), costs.beyond())
        } else {
            distance <= MAX_REFUND_DISTANCE && self.take(index, costs.given_back())
        }
    }

    /// Adds this weight to the first entry of these times, unless it is far from the end of the log; returns whether it added
    /// any.
    pub(super) fn add_within(&mut self, group: &RuleGroup, times_us: RangeInclusive<u64>, weight: u64) -> bool {
        if weight == 0 || self.last.at_us() < *times_us.start() {
            return false;
        }
        self.drop_over(group.reach_us, self.last.at_us());
        let older = self.older.as_slice();
        let index = older.partition_point(|entry| entry.at_us() < *times_us.start());
        let found = older.get(index).unwrap_or(&self.last);
        let is_near = older.len() - index <= MAX_REFUND_DISTANCE;
        is_near && times_us.contains(&found.at_us()) && self.add(index, weight)
    }

    /// Takes this weight from the entry at this index; returns whether it had any.
    fn take(&mut self, index: usize, weight: u64) -> bool {
        let (older, behind) = self.older.as_mut_slice().split_at_mut(index);
        let mut entries = behind.iter_mut().chain([&mut self.last]);
        let Some(entry) = entries.next() else { return false };
        let mut behind = entries.peekable();
        let own = behind.peek().map_or(self.end, |next| next.before()).wrapping_sub(entry.before());
        let taken = own.min(u32::try_from(weight).unwrap_or(u32::MAX));
        if taken > 0 && taken == own {
            // The last entry then has the time of the last call that counts.
            *entry = LogEntry::new(older.last().map_or(0, LogEntry::at_us), entry.before());
        }
        behind.for_each(|entry| *entry = LogEntry::new(entry.at_us(), entry.before().wrapping_sub(taken)));
        self.end = self.end.wrapping_sub(taken);
        taken > 0
    }

    /// Adds this weight to the entry at this index, or as much as the log can hold; returns whether it added any.
    fn add(&mut self, index: usize, weight: u64) -> bool {
        let room = u64::from(u32::MAX) - self.weight();
        let added = u32::try_from(weight.min(room)).unwrap_or(u32::MAX);
        let behind = self.older.as_mut_slice().iter_mut().chain([&mut self.last]).skip(index + 1);
        behind.for_each(|entry| *entry = LogEntry::new(entry.at_us(), entry.before().wrapping_add(added)));
        self.end = self.end.wrapping_add(added);
        added > 0
    }

    pub(super) fn quota(&self, window: &Window, now_us: u64) -> Quota {
        let Window { count, per_us, .. } = *window;
        let used = self.first_within(window, now_us).map_or(0, |first| self.weight_from(first));
        let reset_us = if used > 0 { self.last.at_us() + per_us - now_us } else { 0 };
        let quota = Quota::new(count.saturating_sub(used), reset_us);
        if quota.remaining == 0 { quota.with_wait(self.wait(window, 1, now_us)) } else { quota }
    }

    /// The first entry that a window counts.
    fn first_within(&self, window: &Window, now_us: u64) -> Option<&LogEntry> {
        let is_over = |entry: &LogEntry| entry.at_us() + window.per_us <= now_us;
        let older = self.older.as_slice();
        let first = older.get(older.partition_point(is_over)).unwrap_or(&self.last);
        (!is_over(first)).then_some(first)
    }

    /// The weight of all entries.
    #[inline]
    pub(super) fn weight(&self) -> u64 {
        self.end.wrapping_sub(self.start).into()
    }

    /// The weight of an entry and of all later ones.
    #[inline]
    fn weight_from(&self, entry: &LogEntry) -> u64 {
        self.end.wrapping_sub(entry.before()).into()
    }

    /// The time of the newest entry that leaves too little room: all later entries weigh no more than `room`. The whole
    /// log weighs more.
    // A function of its own, so that a call for which there is room does not contain its code.
    #[inline(never)]
    fn in_the_way_us(&self, room: u64) -> u64 {
        let is_in_the_way = |entry: &LogEntry| self.weight_from(entry) > room;
        if is_in_the_way(&self.last) {
            return self.last.at_us();
        }
        // If all entries weigh the same, this many of the newest fit. A wrong guess does no harm, because it is
        // checked.
        let older = self.older.as_slice();
        let (entries, weight) = (older.len() as u64 + 1, self.weight());
        let fit = if weight == entries { room } else { room * entries / weight.max(1) };
        let guess = usize::try_from(fit).map_or(0, |fit| older.len().saturating_sub(fit));
        let is_right = older.get(guess).is_some_and(is_in_the_way)
            && older.get(guess + 1).is_none_or(|behind| !is_in_the_way(behind));
        let index = if is_right { guess } else { older.partition_point(is_in_the_way).saturating_sub(1) };
        older.get(index).unwrap_or(&self.last).at_us()
    }

    /// Whether so many entries count that a call at this time shares the last one.
    #[inline]
    fn is_dense(&self, group: &RuleGroup, now_us: u64) -> bool {
        let older = self.older.as_slice();
        let from_the_end = (older.len() + 1).checked_sub(MAX_LOG_ENTRIES).and_then(|index| older.get(index));
        from_the_end
            .is_some_and(|entry| entry.at_us() + group.reach_us > now_us && is_close(group, self.last.at_us(), now_us))
    }

    #[cold]
    fn make_room(&mut self, group: &RuleGroup, now_us: u64) {
        self.drop_over(group.reach_us, now_us);
        self.older.make_room();
    }

    /// Drops the entries that no longer counted at `then_us`.
    #[cold]
    fn drop_over(&mut self, reach_us: u64, then_us: u64) {
        let is_over = |entry: &LogEntry| entry.at_us() + reach_us <= then_us;
        let over = self.older.as_slice().partition_point(is_over);
        self.older.remove_first(over);
        if is_over(&self.last) {
            self.last = LogEntry::new(self.last.at_us(), self.end);
        }
        self.begin_at(self.older.as_slice().first().unwrap_or(&self.last).before());
    }
}

/// The weight of a call in the log, at most the largest count of the group.
#[inline]
fn weight_of(cost: u64, group: &RuleGroup) -> u32 {
    u32::try_from(cost.min(group.largest)).unwrap_or(u32::MAX)
}

/// Whether calls of these times may share an entry.
fn may_share(group: &RuleGroup, one_us: u64, other_us: u64) -> bool {
    group.largest > MAX_LOG_ENTRIES as u64 && is_close(group, one_us, other_us)
}

/// Whether these times are in the same slice, if the longest window is cut into [`MAX_LOG_ENTRIES`] slices.
#[cold]
fn is_close(group: &RuleGroup, one_us: u64, other_us: u64) -> bool {
    let grain_us = group.reach_us.div_ceil(MAX_LOG_ENTRIES as u64).max(1);
    one_us / grain_us == other_us / grain_us
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::*;
    use crate::policy::Policy;

    const START_US: u64 = 1_800_000_000_000_000;

    fn policy() -> Policy {
        Policy::builder("p").rule(Rule::sliding_window(1_000, Duration::from_micros(100))).build().unwrap()
    }

    #[test]
    fn a_log_of_steady_length_takes_no_more_and_no_more_room() {
        let (policy, mut log) = (policy(), Log::default());
        for call in 0..100_000 {
            log.charge(&policy.groups()[0], 1, START_US + call);
            assert!(log.older.as_slice().len() < 512);
        }
    }

    #[test]
    fn a_log_that_was_long_gives_room_back() {
        let (policy, mut log) = (policy(), Log::default());
        for call in 0..100 {
            log.charge(&policy.groups()[0], 1, START_US + call);
        }
        for call in 0..1_000 {
            log.charge(&policy.groups()[0], 1, START_US + 1_000 * call);
        }
        assert!(log.older.as_slice().len() < 64);
    }
}
