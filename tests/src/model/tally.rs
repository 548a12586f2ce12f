//! What one subject has done.

use tallygate::Rule;

use super::denials::Denials;
use super::history::{History, is_sliding, per};

/// What one subject has done.
#[derive(Debug)]
pub(super) struct Tally {
    /// What the sliding windows have counted. They share it, and of one call it has no more than the largest of them counts.
    log: History,
    /// What each of the other rules has counted.
    others: Vec<History>,
    pub(super) denials: Denials,
}

impl Tally {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let others = rules.iter().filter(|rule| !is_sliding(rule)).map(|_| History::default()).collect();
        Self { log: History::default(), others, denials: Denials::default() }
    }

    /// What each of the rules has counted.
    pub(super) fn histories<'a>(&'a self, rules: &'a [Rule]) -> impl Iterator<Item = &'a History> {
        let mut others = self.others.iter();
        rules.iter().map(move |rule| if is_sliding(rule) { &self.log } else { others.next().expect("one each") })
    }

    /// Forgets what lies in the future, which happens when the clock was set back.
    pub(super) fn forget_future(&mut self, rules: &[Rule], now: u128) {
        self.log.forget_calls(|at| at > now);
        self.others(rules).for_each(|(rule, history)| history.forget_if_begun_after(rule, now));
    }

    pub(super) fn charge(&mut self, rules: &[Rule], cost: u128, now: u128, spare: u128) {
        self.others(rules).for_each(|(rule, history)| history.charge(rule, cost, now));
        let largest = largest(rules);
        if largest == 0 {
            return;
        }
        self.log.log(cost.min(largest), now);
        if self.log.weight(0, u128::MAX) > spare * largest {
            let reach = reach(rules);
            self.log.forget_calls(|at| at + reach <= now);
        }
    }

    /// Removes a call of that time from every rule that still counts it, and returns whether one does.
    pub(super) fn refund(&mut self, rules: &[Rule], cost: u128, at: u128, now: u128) -> bool {
        let counts = at <= now && now < at + reach(rules);
        let mut found = counts && self.log.take(at, at + 1, cost.min(largest(rules)));
        self.log.forget_nothings();
        for (rule, history) in self.others(rules) {
            found |= history.refund(rule, cost, at, now);
        }
        found
    }

    fn others<'a>(&'a mut self, rules: &'a [Rule]) -> impl Iterator<Item = (&'a Rule, &'a mut History)> {
        rules.iter().filter(|rule| !is_sliding(rule)).zip(&mut self.others)
    }
}

fn largest(rules: &[Rule]) -> u128 {
    rules.iter().filter(|rule| is_sliding(rule)).map(|rule| rule.count().max(1).into()).max().unwrap_or_default()
}

/// How long the log counts a call.
fn reach(rules: &[Rule]) -> u128 {
    rules.iter().filter(|rule| is_sliding(rule)).map(per).max().unwrap_or_default()
}
