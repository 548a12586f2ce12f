//! What one rule has counted, alone or together with others.

use tallygate::Rule;

use super::call::Standing;
use super::concurrency::Concurrency;
use super::history::History;
use super::log::Log;

/// What one rule has counted.
pub(super) enum Counted<'a> {
    /// A sliding window, together with the others of its subject.
    Log(&'a Log),
    /// A concurrency limit.
    Concurrency(&'a Concurrency),
    /// Any other rule, alone.
    History(&'a History),
}

impl Counted<'_> {
    /// Returns whether a call of that cost fits at that time, if nothing happens before.
    pub(super) fn fits(&self, rule: &Rule, cost: u128, at: u128) -> bool {
        match self {
            Self::Log(log) => log.fits(rule, cost, at),
            Self::Concurrency(calls) => calls.fits(rule, at),
            Self::History(history) => history.fits(rule, cost, at),
        }
    }

    /// Returns the first moment from now on at which the call fits, if nothing happens before.
    pub(super) fn first_fit(&self, rule: &Rule, cost: u128, now: u128) -> Option<u128> {
        let over = self.over(rule).max(now);
        if over > now && self.fits(rule, cost, over - 1) {
            // Until everything has stopped counting, a call that fits still fits.
            return Some(first(now, over - 1, |at| self.fits(rule, cost, at)));
        }
        self.fits(rule, cost, over).then_some(over)
    }

    /// Returns the state of the rule.
    pub(super) fn standing(&self, rule: &Rule, now: u128) -> Standing {
        let (remaining, reset) = match self {
            Self::Log(log) => log.standing(rule, now),
            Self::Concurrency(calls) => calls.standing(rule, now),
            Self::History(history) => history.standing(rule, now),
        };
        let used_up_for = || self.first_fit(rule, 1, now).map(|first_fit| first_fit - now);
        Standing { remaining, reset, used_up_for: if remaining == 0 { used_up_for() } else { None } }
    }

    /// Returns when the rule is as if it had never counted, if nothing happens before.
    fn over(&self, rule: &Rule) -> u128 {
        match self {
            Self::Log(log) => log.over(rule),
            Self::Concurrency(calls) => calls.over(),
            Self::History(history) => history.over(rule),
        }
    }
}

/// Returns the first of these numbers for which the condition is true. It is true for the last number, and for all
/// after the first.
pub(super) fn first(mut low: u128, mut high: u128, is_true: impl Fn(u128) -> bool) -> u128 {
    while low < high {
        let middle = u128::midpoint(low, high);
        if is_true(middle) { high = middle } else { low = middle + 1 }
    }
    low
}
