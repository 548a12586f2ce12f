//! Whether a caller that waits can be served in its time, by the rules in force and by what is known of its queue.
//!
//! Each bound is a generous one: who may be served is never turned away.

use tallygate_rules::{Algorithm, Role, Rule};

use super::demand::Demand;
use super::wait_queue::QueueHead;
use crate::micros;
use crate::policy::Policy;

/// The most ticks of a schedule that are counted. A schedule with more ticks within a wait turns nobody away.
#[cfg(feature = "cron")]
const MOST_TICKS: usize = 64;

/// The time in which a caller is to be served, in microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitSpan {
    pub(super) from_us: u64,
    pub(super) until_us: u64,
    /// By how many microseconds the clock of the store is ahead.
    #[cfg_attr(not(feature = "cron"), allow(dead_code, reason = "only schedules know more than lengths of time"))]
    pub(super) store_ahead: i64,
}

impl WaitSpan {
    /// Whether so much can be admitted within that time, given the first caller of the queue.
    pub(super) fn has_room(self, policy: &Policy, needed: Demand, head: QueueHead) -> bool {
        let Some(us) = self.until_us.checked_sub(self.from_us) else { return false };
        let is_head_known = head.us >= self.from_us;
        policy.rules().iter().enumerate().all(|(position, rule)| {
            // The rule with the longest wait has just enough room for the first caller then.
            let is_reason = is_head_known && head.rule == Some(position);
            let most = self.most_admitted(rule, us, is_reason.then_some(head.cost));
            let needed = if rule.role() == Role::Duplicate { needed.calls } else { needed.cost };
            most.is_none_or(|most| needed <= most)
        })
    }

    /// Returns the most that a rule admits within that time, both ends included; `None` if there is no bound. `room` is the
    /// room at the beginning, if it is known.
    #[cfg_attr(not(feature = "cron"), allow(clippy::unused_self, reason = "only schedules need the time of day"))]
    fn most_admitted(self, rule: &Rule, us: u64, room: Option<u64>) -> Option<u64> {
        let count = rule.count();
        let windows = |per| us / micros::from_duration(per).max(1);
        let begun = if room.is_some() { 1 } else { 2 };
        match rule.algorithm() {
            Algorithm::SlidingWindow { per } => Some(count.saturating_mul(windows(*per) + 1)),
            // If this rule is the reason to wait, a window begins with the first caller.
            Algorithm::FixedWindow { per } => Some(count.saturating_mul(windows(*per) + begun)),
            Algorithm::SlidingCounter { per } => Some(count.saturating_mul(windows(*per) + 2)),
            #[cfg(feature = "cron")]
            Algorithm::Cron { schedule } => {
                let at = |us: u64| us.saturating_add_signed(self.store_ahead);
                let next = |us: u64| schedule.next_tick(us);
                let ticks = std::iter::successors(next(at(self.from_us)), |us| next(*us));
                let ticks = ticks.take_while(|us| *us <= at(self.until_us)).take(MOST_TICKS).count();
                (ticks < MOST_TICKS).then(|| count.saturating_mul(ticks as u64 + 1))
            }
            Algorithm::TokenBucket(bucket) if bucket.reset_after().is_none() => {
                // Its wait is rounded up, and so is this time.
                let us = u128::from(us) + 2;
                let flown = u128::from(count) * us / u128::from(micros::from_duration(bucket.per()).max(1));
                let held = room.unwrap_or_else(|| rule.capacity().unwrap_or(u64::MAX));
                Some(held.saturating_add(u64::try_from(flown).unwrap_or(u64::MAX)))
            }
            // A concurrent call may end at any time, and an unused bucket is new again.
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::TokenBucket;

    use super::*;

    const SECOND_US: u64 = 1_000_000;
    const SECOND: Duration = Duration::from_secs(1);

    /// The most that is admitted in two seconds from the time on at which the first caller may go.
    fn most_in_two_seconds(rule: &Rule, is_reason: bool) -> u64 {
        let policy = Policy::builder("p").rule(rule.clone()).build().unwrap();
        let from_us = 60 * SECOND_US;
        let span = WaitSpan { from_us, until_us: from_us + 2 * SECOND_US, store_ahead: 0 };
        let head = QueueHead { us: from_us, rule: is_reason.then_some(0), cost: 1 };
        let fits = |units: &u64| span.has_room(&policy, Demand { calls: *units, cost: *units }, head);
        (0..1_000).take_while(fits).last().unwrap()
    }

    #[test]
    fn each_kind_of_rule_bounds_how_much_is_admitted_while_a_caller_waits() {
        let cases = [
            (Rule::sliding_window(50, SECOND), 150, 150),
            (Rule::fixed_window(50, SECOND), 200, 150),
            (Rule::sliding_counter(50, SECOND), 200, 200),
            (Rule::token_bucket(50, SECOND), 150, 101),
            (Rule::from_bucket(50, TokenBucket::new(SECOND).with_capacity(70)), 170, 101),
            (Rule::duplicate(SECOND), 3, 3),
            (Rule::concurrency(1, SECOND), 999, 999),
            (Rule::from_bucket(50, TokenBucket::new(SECOND).with_reset_after(SECOND)), 999, 999),
        ];
        for (rule, most, most_behind_the_reason) in cases {
            let found = [false, true].map(|is_reason| most_in_two_seconds(&rule, is_reason));
            assert_eq!(found, [most, most_behind_the_reason], "{rule}");
        }
    }

    #[cfg(feature = "cron")]
    #[test]
    fn each_tick_of_a_schedule_admits_the_count_again() {
        let schedule = tallygate_rules::Schedule::parse("* * * * * *", "UTC").unwrap();
        assert_eq!(most_in_two_seconds(&Rule::cron(50, schedule), true), 150);
    }

    #[test]
    fn nothing_is_admitted_before_the_first_caller_may_go() {
        let policy = Policy::builder("p").rule(Rule::sliding_window(9, SECOND)).build().unwrap();
        let span = WaitSpan { from_us: 2, until_us: 1, store_ahead: 0 };
        assert!(!span.has_room(&policy, Demand { calls: 1, cost: 1 }, QueueHead::default()));
    }
}
