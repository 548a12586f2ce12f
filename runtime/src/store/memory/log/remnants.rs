//! What a log leaves of its subject, and counts when that returns.

use arrayvec::ArrayVec;
use tallygate_rules::MAX_SLIDING_COUNT;

use super::{Log, LogEntry};
use crate::algorithm::Remnant;
use crate::clock::is_set_back;

/// How many parts of a log are left of a subject that is replaced, at most.
const PARTS: usize = 3;

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

    /// Counts what is left of an earlier log, in the order of the ends. An end that was rounded up is no later than that of a
    /// call of this time.
    pub(in super::super) fn restore(&mut self, remnants: &[Remnant], reach_us: u64, now_us: u64) {
        // So much closes any window, also to a call of cost 0.
        let amount = |remnant: &Remnant| remnant.amount.min(MAX_SLIDING_COUNT + 1);
        for (index, remnant) in remnants.iter().enumerate() {
            let later = remnants.get(index + 1).map_or(0, amount);
            let weight = u32::try_from(amount(remnant).saturating_sub(later)).unwrap_or(u32::MAX);
            if weight > 0 {
                self.push(weight, remnant.ends_us.saturating_sub(reach_us).min(now_us));
            }
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
    use crate::policy::Policy;

    const START_US: u64 = 1_800_000_000_000_000;

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
