//! Queues of callers that wait for admission: one for all calls of the same subjects. A queue is in order, and only its
//! first caller asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tallygate_rules::Role;

use crate::algorithm::{self, Span};
use crate::call::Demand;
use crate::clock::Clock;
use crate::lock::lock;
use crate::observe::WaitRefusal;
use crate::policy::{Policy, UnitCost};
use crate::system::RandomState;

/// The wait queues of this process, by the keys of all tallies that decide a call. Calls that share only some tallies
/// are in different queues, as one may have room while another has none. Empty queues are removed.
pub(crate) struct WaitQueues {
    state: Mutex<QueuesByKey>,
    /// The most callers in all queues.
    max_callers: usize,
}

#[derive(Default)]
struct QueuesByKey {
    by_key: HashMap<Arc<str>, WaitQueue, RandomState>,
    callers: usize,
}

#[derive(Default)]
struct WaitQueue {
    /// Held by the first caller of the queue. The mutex is fair, so it is handed on in order.
    turn: Arc<tokio::sync::Mutex<()>>,
    callers: usize,
    waiting: QueueDemand,
    head: QueueHead,
}

/// What callers of one queue need together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueDemand {
    pub(super) calls: Demand,
    /// Units in which no caller pays may be left out.
    pub(super) units: Vec<UnitCost>,
}

impl QueueDemand {
    /// What they need of a unit.
    pub(super) fn of_unit(&self, unit: &str) -> u64 {
        self.units.iter().find(|(named, _)| **named == *unit).map_or(0, |(_, cost)| *cost)
    }

    fn plus(&self, other: &Self) -> Self {
        let mut units = self.units.clone();
        for (unit, cost) in &other.units {
            match units.iter_mut().find(|(named, _)| named == unit) {
                Some((_, sum)) => *sum = sum.saturating_add(*cost),
                None => units.push((Arc::clone(unit), *cost)),
            }
        }
        Self { calls: self.calls.plus(other.calls), units }
    }

    fn less(&self, other: &Self) -> Self {
        let left = |(unit, cost): &UnitCost| (Arc::clone(unit), cost.saturating_sub(other.of_unit(unit)));
        Self { calls: self.calls.less(other.calls), units: self.units.iter().map(left).collect() }
    }
}

/// The known state of the first caller of a queue; empty before it was denied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueHead {
    /// When the caller may go, by the clock of the limiter, unless something makes room before; 0 if unknown.
    pub(super) us: u64,
    /// The position of the rule that denies it.
    pub(super) rule: Option<usize>,
    /// How much has to be left by that rule, so that the caller may go.
    pub(super) needed: u64,
}

/// The time in which a waiting caller has to be served, in microseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitSpan {
    pub(super) from_us: u64,
    pub(super) until_us: u64,
    /// How many microseconds the clock of the store is ahead.
    pub(super) store_ahead: i64,
}

impl WaitSpan {
    /// Whether this demand can be admitted in that time, by the rules in force and given the first caller of the queue. All
    /// bounds are generous: a caller that may be served is never turned away.
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

impl WaitQueues {
    pub(super) fn new(max_callers: usize) -> Self {
        Self { state: Mutex::default(), max_callers }
    }

    /// Whether any caller waits for these tallies.
    pub(super) fn has(&self, key: &str) -> bool {
        lock(&self.state).by_key.contains_key(key)
    }

    /// Whether the first caller for these tallies is known to go only after `us`.
    pub(super) fn is_before_head(&self, key: &str, us: Option<u64>) -> bool {
        let head = lock(&self.state).by_key.get(key).map_or(0, |queue| queue.head.us);
        us.is_some_and(|us| us < head)
    }

    /// Adds a caller at the end of a queue, if `can_be_served` says so, given the demand of all callers up to this one
    /// and the known head. In an empty queue, the caller becomes the head, as it was denied.
    pub(super) fn join(
        &self,
        key: Arc<str>,
        own: QueueDemand,
        denied: QueueHead,
        can_be_served: impl FnOnce(&QueueDemand, QueueHead) -> bool,
    ) -> Result<QueuePlace<'_>, WaitRefusal> {
        let mut state = lock(&self.state);
        if state.callers >= self.max_callers {
            return Err(WaitRefusal::Full);
        }
        let needed = state.by_key.get(&key).map_or_else(|| own.clone(), |queue| queue.waiting.plus(&own));
        let head = state.by_key.get(&key).map_or(denied, |queue| queue.head);
        if !can_be_served(&needed, head) {
            return Err(WaitRefusal::Late);
        }
        state.callers += 1;
        let queue = state.by_key.entry(Arc::clone(&key)).or_default();
        (queue.waiting, queue.head) = (needed, head);
        queue.callers += 1;
        Ok(QueuePlace { queues: self, key, own, turn: Arc::clone(&queue.turn) })
    }

    #[cfg(test)]
    pub(super) fn lengths(&self) -> Vec<usize> {
        lock(&self.state).by_key.values().map(|queue| queue.callers).collect()
    }

    fn leave(&self, key: &str, own: &QueueDemand) {
        let mut state = lock(&self.state);
        state.callers -= 1;
        let Some(queue) = state.by_key.get_mut(key) else { return };
        queue.callers -= 1;
        queue.waiting = queue.waiting.less(own);
        if queue.callers == 0 {
            state.by_key.remove(key);
        }
    }
}

/// A caller's place in a queue. Dropping it leaves the queue.
pub(super) struct QueuePlace<'a> {
    queues: &'a WaitQueues,
    key: Arc<str>,
    own: QueueDemand,
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// The turn of the first caller of a queue. Dropping it lets the next caller go.
pub(super) struct QueueTurn<'a> {
    place: &'a QueuePlace<'a>,
    _turn: tokio::sync::MutexGuard<'a, ()>,
}

impl QueuePlace<'_> {
    /// Waits until the caller is the first of its queue; `None` at the deadline.
    pub(super) async fn turn(&self, clock: &Clock, deadline_us: Option<u64>) -> Option<QueueTurn<'_>> {
        let turn = match deadline_us {
            Some(deadline_us) => clock.timeout_at(deadline_us, self.turn.lock()).await?,
            None => self.turn.lock().await,
        };
        Some(QueueTurn { place: self, _turn: turn })
    }

    fn set_head(&self, head: QueueHead) {
        if let Some(queue) = lock(&self.queues.state).by_key.get_mut(&self.key) {
            queue.head = head;
        }
    }
}

impl QueueTurn<'_> {
    pub(super) fn set_head(&self, head: QueueHead) {
        self.place.set_head(head);
    }

    /// Clears the head, because the caller asks again.
    pub(super) fn clear_head(&self) {
        self.place.set_head(QueueHead::default());
    }
}

impl Drop for QueueTurn<'_> {
    fn drop(&mut self) {
        self.clear_head();
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.queues.leave(&self.key, &self.own);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::{Rule, TokenBucket};

    use super::*;

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
