//! What one rule has counted, be it alone or with others.

use tallygate::Rule;

use super::concurrency::Concurrency;
use super::history::History;
use super::log::Log;

/// What one rule has counted.
pub(super) enum Counted<'a> {
    /// Of a sliding window, with the others of its subject.
    Log(&'a Log),
    /// Of a concurrency limit.
    Concurrency(&'a Concurrency),
    /// Of any other rule, alone.
    History(&'a History),
}

impl Counted<'_> {
    /// Whether a call of that cost fits at that time, if nothing happens before.
    pub(super) fn fits(&self, rule: &Rule, cost: u128, at: u128) -> bool {
        match self {
            Self::Log(log) => log.fits(rule, cost, at),
            Self::Concurrency(calls) => calls.fits(rule, at),
            Self::History(history) => history.fits(rule, cost, at),
        }
    }

    /// The first moment from now on at which the call fits, if nothing happens before.
    pub(super) fn first_fit(&self, rule: &Rule, cost: u128, now: u128) -> Option<u128> {
        let over = self.over(rule).max(now);
        if over > now && self.fits(rule, cost, over - 1) {
            // Until all is over, a call that fits goes on fitting.
            return Some(first(now, over - 1, |at| self.fits(rule, cost, at)));
        }
        self.fits(rule, cost, over).then_some(over)
    }

    /// Where the rule stands: the greatest cost that fits, and the time until it is whole again.
    pub(super) fn standing(&self, rule: &Rule, now: u128) -> (u128, u128) {
        match self {
            Self::Log(log) => log.standing(rule, now),
            Self::Concurrency(calls) => calls.standing(rule, now),
            Self::History(history) => history.standing(rule, now),
        }
    }

    /// When the rule is as if it had never counted, if nothing happens before.
    fn over(&self, rule: &Rule) -> u128 {
        match self {
            Self::Log(log) => log.over(rule),
            Self::Concurrency(calls) => calls.over(),
            Self::History(history) => history.over(rule),
        }
    }
}

/// The first of these numbers of which it is true; it is of the last, and of all behind the first.
pub(super) fn first(mut low: u128, mut high: u128, is_true: impl Fn(u128) -> bool) -> u128 {
    while low < high {
        let middle = u128::midpoint(low, high);
        if is_true(middle) { high = middle } else { low = middle + 1 }
    }
    low
}
