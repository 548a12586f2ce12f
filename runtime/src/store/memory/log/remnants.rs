//! What a log leaves of its subject, and counts when that returns.

use arrayvec::ArrayVec;
use tallygate_rules::MAX_SLIDING_COUNT;

use super::{Log, LogEntry};
use crate::algorithm::Remnant;
use crate::clock::is_set_back;
use crate::policy::RuleGroup;

/// How many parts of a log are left of a subject that is replaced, at most.
const PARTS: usize = 3;

/// So much closes any window, also to a call of cost 0.
const MOST: u64 = MAX_SLIDING_COUNT + 1;

/// The sums from here on are at most [`MOST`] before 0.
const OTHERS: u32 = u32::MAX - (1 << 31);

impl Log {
    /// Returns upper bounds of what the log counts: the sum until each of some times.
    pub(in super::super) fn remnants(&self, reach_us: u64, now_us: u64) -> ArrayVec<Remnant, PARTS> {
        let older = self.older.as_slice();
        let entry = |index| older.get(index).unwrap_or(&self.last);
        let first = older.partition_point(|entry| entry.at_us() + reach_us <= now_us);
        // If the clock was set back, entries that are later than now no longer count.
        let is_forgotten = is_set_back(self.latest_us(), now_us);
        let counted =
            if is_forgotten { older.partition_point(|entry| entry.at_us() <= now_us) } else { older.len() + 1 };
        let end = if is_forgotten { entry(counted).before() } else { self.end };
        let step = counted.saturating_sub(first).div_ceil(PARTS).max(1);
        // The last entry, and some before it at the same distance. What is between them ends with the later one.
        let remnants = (first..counted).rev().step_by(step).map(|index| {
            let begin = (index + 1).saturating_sub(step).max(first);
            let amount = end.wrapping_sub(entry(begin).before());
            Remnant::until(entry(index).at_us() + reach_us, amount.into())
        });
        remnants.collect()
    }

    /// Counts what is left of an earlier log, in the order of the ends. `own` are the remnants that are not shared with
    /// others. An end that was rounded up is cut to that of a call of now.
    pub(in super::super) fn restore(&mut self, remnants: &[Remnant], own: &[Remnant], reach_us: u64, now_us: u64) {
        let amount = |remnant: &Remnant| remnant.amount.min(MOST);
        let most = |remnants: &[Remnant]| remnants.iter().map(amount).max().unwrap_or_default();
        // What others have left comes first, because it is not known which of both ends later: it is no more than this.
        let others = u32::try_from(most(remnants).saturating_sub(most(own))).unwrap_or(u32::MAX);
        self.start = 0_u32.wrapping_sub(others);
        (self.last, self.end) = (LogEntry::new(0, self.start), self.start);
        for (index, remnant) in remnants.iter().enumerate() {
            let later = remnants.get(index + 1).map_or(0, amount);
            let weight = u32::try_from(amount(remnant).saturating_sub(later)).unwrap_or(u32::MAX);
            if weight > 0 {
                self.push(weight, remnant.ends_us.saturating_sub(reach_us).min(now_us));
            }
        }
    }

    /// Whether the log begins with what others have left.
    pub(in super::super) fn counts_others(&self) -> bool {
        self.start >= OTHERS
    }

    /// Whether the sliding windows of the group would admit a call without what others have left.
    pub(in super::super) fn admits_without_others(&self, group: &RuleGroup, cost: u64, now_us: u64) -> bool {
        group.windows.iter().all(|window| {
            let own = self
                .first_within(window, now_us)
                .map_or(0, |first| self.weight_from(first).saturating_sub(u64::from(self.others_from(first.before()))));
            own.saturating_add(if window.is_duplicate { 1 } else { cost }) <= window.count
        })
    }

    /// The weight of what others have left, from this sum on.
    fn others_from(&self, before: u32) -> u32 {
        let all = if self.counts_others() { 0_u32.wrapping_sub(self.start) } else { 0 };
        all.saturating_sub(before.wrapping_sub(self.start))
    }

    /// Notes that the log begins at this sum.
    pub(super) fn begin_at(&mut self, start: u32) {
        if start == self.start {
            return;
        }
        let (others, dropped) = (self.others_from(self.start), start.wrapping_sub(self.start));
        self.start = start;
        // The sums begin anew before they would seem to be those of others.
        if dropped >= others && start >= OTHERS {
            self.older.as_mut_slice().iter_mut().chain([&mut self.last]).for_each(|entry| {
                *entry = LogEntry::new(entry.at_us(), entry.before().wrapping_sub(start));
            });
            (self.start, self.end) = (0, self.end.wrapping_sub(start));
        }
    }

    fn push(&mut self, weight: u32, at_us: u64) {
        if self.last.before() == self.end {
            self.last = LogEntry::new(at_us, self.last.before());
        } else {
            self.older.push(self.last);
            self.last = LogEntry::new(at_us, self.end);
        }
        self.end = self.end.wrapping_add(weight);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::*;
    use crate::algorithm::CostChange;
    use crate::policy::Policy;

    const START_US: u64 = 1_800_000_000_000_000;

    #[test]
    fn a_cost_beyond_all_counts_is_not_admitted_without_others() {
        let rule = Rule::sliding_window(9, Duration::from_secs(10));
        let (policy, mut log) = (Policy::builder("p").rule(rule).build().unwrap(), Log::default());
        let left = Remnant { is_joined: true, ..Remnant::until(START_US + 9_000_000, 7) };
        log.restore(&[left], &[Remnant::until(START_US + 8_000_000, 3)], 10_000_000, START_US);
        assert!(!log.admits_without_others(&policy.groups()[0], u64::MAX, START_US));
    }

    #[test]
    fn what_others_have_left_is_told_apart_while_it_counts_however_much_is_counted_later() {
        let (second, most) = (1_000_000, MAX_SLIDING_COUNT);
        let rule = Rule::sliding_window(most, Duration::from_secs(10));
        let (policy, mut log) = (Policy::builder("p").rule(rule).build().unwrap(), Log::default());
        let group = &policy.groups()[0];
        let others = Remnant { is_joined: true, ..Remnant::until(START_US + 9 * second, 7) };
        log.restore(&[others], &[Remnant::until(START_US + 8 * second, 3)], 10 * second, START_US);
        assert!(log.counts_others() && !log.longest_wait(&group.windows, most - 6, START_US).is_none());
        assert_eq!([3, 2].map(|left| log.admits_without_others(group, most - left, START_US)), [true, false]);
        for round in 1..20 {
            let now_us = START_US + round * 10 * second;
            assert!(log.admits_without_others(group, most, now_us));
            log.charge(group, most, now_us);
            assert!(!log.admits_without_others(group, 1, now_us) && (round < 3 || !log.counts_others()));
        }
    }

    #[test]
    fn a_refund_of_what_others_have_left_makes_no_room_that_a_subject_never_had() {
        let rule = Rule::sliding_window(9, Duration::from_secs(10));
        let (policy, mut log) = (Policy::builder("p").rule(rule).build().unwrap(), Log::default());
        let (group, admitted_us) = (&policy.groups()[0], START_US - 1_000_000);
        log.restore(&[Remnant::until(admitted_us + group.reach_us, 7)], &[], group.reach_us, START_US);
        // The call of that time was the subject's own. Its weight is taken from what others have left.
        assert!(log.refund(group, CostChange { charged: 5, used: 0 }, admitted_us, START_US));
        assert_eq!([9, 10].map(|cost| log.admits_without_others(group, cost, START_US)), [true, false]);
        log.charge(group, 3, START_US);
        assert_eq!([9, 10].map(|cost| log.admits_without_others(group, cost, START_US)), [true, false]);
    }

    #[test]
    fn a_log_leaves_nothing_of_a_time_from_before_the_clock_was_set_back() {
        let rule = Rule::sliding_window(9, Duration::from_secs(10));
        let (policy, mut log) = (Policy::builder("p").rule(rule).build().unwrap(), Log::default());
        let second = 1_000_000;
        for number in 0..4 {
            log.charge(&policy.groups()[0], 1, START_US + number * second);
        }
        let left = |now_us| log.remnants(10 * second, now_us);
        assert_eq!(left(START_US + 3 * second - 1).first().map(|last| last.ends_us), Some(START_US + 13 * second));
        let left: Vec<_> = left(START_US + second).iter().map(|left| (left.ends_us, left.amount)).collect();
        assert_eq!(left, [(START_US + 11 * second, 1), (START_US + 10 * second, 2)]);
    }
}
