//! What one subject has done.

use tallygate::Rule;
use tallygate_rules::MAX_STANDSTILL;

use super::Drops;
use super::concurrency::Concurrency;
use super::counted::Counted;
use super::denials::Denials;
use super::history::{History, is_sliding};
use super::log::{Log, Shape};

/// Returns whether the clock was set back since that time by more than it may stand still.
pub(super) fn is_set_back(since: u128, now: u128) -> bool {
    since > now + MAX_STANDSTILL.as_micros()
}

/// What one subject has done.
#[derive(Debug)]
pub(super) struct Tally {
    /// The calls that the sliding windows have counted together.
    log: Log,
    /// The calls that each of the other rules has counted.
    others: Vec<History>,
    pub(super) denials: Denials,
    /// The calls that a concurrency limit has counted. It has a tally of its own.
    pub(super) running: Concurrency,
}

impl Tally {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let others = rules.iter().filter(|rule| has_history(rule)).map(|_| History::default()).collect();
        Self { log: Log::default(), others, denials: Denials::default(), running: Concurrency::default() }
    }

    /// Returns what each of the rules has counted.
    pub(super) fn counted<'a>(&'a self, rules: &'a [Rule]) -> impl Iterator<Item = Counted<'a>> {
        let mut others = self.others.iter().map(Counted::History);
        let of = move |rule: &Rule| match rule.lease() {
            Some(_) => Some(Counted::Concurrency(&self.running)),
            None if is_sliding(rule) => Some(Counted::Log(&self.log)),
            None => others.next(),
        };
        rules.iter().map_while(of)
    }

    /// Forgets calls in the future, if the clock was set back. If it went back only a little, time stands still.
    pub(super) fn settle_time(&mut self, rules: &[Rule], now: u128) -> u128 {
        let begun = self.others(rules).map(|(rule, history)| history.begun(rule)).max();
        let latest = self.log.latest().max(begun.unwrap_or(0));
        if !is_set_back(latest, now) {
            return latest.max(now);
        }
        self.log.forget_future(now);
        self.others(rules).for_each(|(rule, history)| history.forget_if_begun_after(rule, now));
        now
    }

    pub(super) fn charge(&mut self, rules: &[Rule], cost: u128, now: u128, drops: Drops) {
        let shape = Shape::of(rules);
        self.log.forget_past(&shape, cost, drops, now);
        self.log.charge(&shape, cost, now);
        self.others(rules).for_each(|(rule, history)| history.charge(rule, cost, now));
    }

    /// Changes the cost of a call of that time from the first to the second, in every rule that still counts it.
    /// Returns whether anything changed.
    pub(super) fn recount(&mut self, rules: &[Rule], costs: (u128, u128), at: u128, now: u128) -> bool {
        let mut found = self.log.recount(&Shape::of(rules), costs, at, now);
        for (rule, history) in self.others(rules) {
            found |= history.recount(rule, costs, at, now);
        }
        found
    }

    /// Charges what a call has used where it has cost nothing, even beyond the count.
    pub(super) fn charge_late(&mut self, rules: &[Rule], used: u128, now: u128, drops: Drops) {
        let now = self.settle_time(rules, now);
        let shape = Shape::of(rules);
        self.log.forget_past(&shape, used, drops, now);
        self.log.charge_late(&shape, used, now);
        for (rule, history) in self.others(rules) {
            history.charge(rule, 0, now);
            history.recount(rule, (0, used), now, now);
        }
    }

    fn others<'a>(&'a mut self, rules: &'a [Rule]) -> impl Iterator<Item = (&'a Rule, &'a mut History)> {
        rules.iter().filter(|rule| has_history(rule)).zip(&mut self.others)
    }
}

/// Returns whether a rule counts alone.
fn has_history(rule: &Rule) -> bool {
    !is_sliding(rule) && rule.lease().is_none()
}
