//! Whether a waiting caller can be served in time, by the rules in force and by what is known of its queue.
//!
//! All bounds are generous: a caller that may be served is never turned away.

use tallygate_rules::Role;

use super::wait_queue::{QueueDemand, QueueHead};
use crate::algorithm::{self, Span};
use crate::policy::Policy;

/// The time in which a caller has to be served, in microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitSpan {
    pub(super) from_us: u64,
    pub(super) until_us: u64,
    /// How many microseconds the clock of the store is ahead.
    pub(super) store_ahead: i64,
}

impl WaitSpan {
    /// Whether this demand can be admitted in that time, given the first caller of the queue.
    pub(super) fn has_room(self, policy: &Policy, needed: &QueueDemand, head: QueueHead) -> bool {
        if self.until_us < self.from_us {
            return false;
        }
        let by_store = |us: u64| us.saturating_add_signed(self.store_ahead);
        let within = Span { from_us: by_store(self.from_us), until_us: by_store(self.until_us) };
        let is_head_known = head.us >= self.from_us;
        // A rule in shadow makes nobody wait.
        let mut enforced = policy.rules().iter().enumerate().filter(|(_, rule)| !rule.is_shadow());
        enforced.all(|(position, rule)| {
            // At `head.us`, the rule with the longest wait has just enough room for the first caller.
            let is_reason = is_head_known && head.rule == Some(position);
            let room = is_reason.then_some(head.needed);
            let most = algorithm::with(rule, |counting| counting.most_admitted(within, room));
            let needed = match rule.unit() {
                Some(unit) => needed.of_unit(unit),
                None if rule.role() == Role::Duplicate => needed.calls.calls,
                None => needed.calls.cost,
            };
            most.is_none_or(|most| needed <= most)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::{Rule, TokenBucket};

    use super::*;
    use crate::call::Demand;

    const SECOND_US: u64 = 1_000_000;
    const SECOND: Duration = Duration::from_secs(1);

    fn demand(calls: u64) -> QueueDemand {
        QueueDemand { calls: Demand { calls, cost: calls }, units: Vec::new() }
    }

    /// The most that is admitted in two seconds after the first caller may go.
    fn most_in_two_seconds(rule: &Rule, is_reason: bool) -> u64 {
        let policy = Policy::builder("p").rule(rule.clone()).build().unwrap();
        let from_us = 60 * SECOND_US;
        let span = WaitSpan { from_us, until_us: from_us + 2 * SECOND_US, store_ahead: 0 };
        let head = QueueHead { us: from_us, rule: is_reason.then_some(0), needed: 1 };
        let fits = |units: &u64| span.has_room(&policy, &demand(*units), head);
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
    fn a_rule_in_shadow_turns_nobody_away() {
        let rules = [Rule::sliding_window(50, SECOND), Rule::sliding_window(1, 3_600 * SECOND).shadow()];
        let policy = Policy::builder("p").rules(rules).build().unwrap();
        let span = WaitSpan { from_us: 60 * SECOND_US, until_us: 62 * SECOND_US, store_ahead: 0 };
        assert!(span.has_room(&policy, &demand(10), QueueHead::default()));
    }

    #[test]
    fn nothing_is_admitted_before_the_first_caller_may_go() {
        let policy = Policy::builder("p").rule(Rule::sliding_window(9, SECOND)).build().unwrap();
        let span = WaitSpan { from_us: 2, until_us: 1, store_ahead: 0 };
        assert!(!span.has_room(&policy, &demand(1), QueueHead::default()));
    }
}
