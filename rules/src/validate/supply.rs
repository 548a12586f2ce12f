//! What a rule admits at most, and whether another rule always admits that.
//!
//! Times are whole microseconds. A window of length `x` contains the instants `(t − x, t]`: the hits at its first and at
//! its last instant are at most `x − 1` apart.

use crate::algorithm::{Algorithm, Role};
use crate::bucket::TokenBucket;
use crate::costs::Costs;
use crate::rule::Rule;

/// The most that a rule admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Supply {
    /// At most `weight` in any window of length `per_us`.
    Window { weight: u128, per_us: u128 },
    /// At most `capacity + count · x / per_us` between two hits that are `x` apart.
    Bucket { capacity: u128, count: u128, per_us: u128 },
    /// At most `weight` in each of some windows that follow each other and begin at least `per_us` apart.
    Slots { weight: u128, per_us: u128 },
}

impl Supply {
    /// Returns what a rule admits at most, or `None` if that is not known, or if it admits no call of these costs.
    pub(super) fn of(rule: &Rule, costs: Costs) -> Option<Self> {
        let count = u128::from(rule.count());
        let per_us = shortest_window_us(rule)?;
        match (rule.role(), rule.algorithm(), costs) {
            (Role::Duplicate, _, Costs::Always(cost)) => {
                let weight = count.saturating_mul(cost.into());
                (weight > 0).then_some(Self::Window { weight, per_us })
            }
            (Role::Limit, Algorithm::SlidingWindow { .. }, _) => {
                let weight = whole_calls(count, costs);
                (weight > 0).then_some(Self::Window { weight, per_us })
            }
            (Role::Limit, Algorithm::TokenBucket(bucket), _) => {
                let capacity = u128::from(bucket.capacity_for(rule.count()));
                let is_known = whole_calls(capacity, costs) > 0 && !adds_by_reset(bucket, rule.count());
                is_known.then_some(Self::Bucket { capacity, count, per_us })
            }
            // The windows of a counter are its slots: none of them admits more.
            (Role::Limit, _, _) => {
                let weight = whole_calls(count, costs);
                (weight > 0).then_some(Self::Slots { weight, per_us })
            }
            // The calls beside `prevent_duplicate` may have any weight, and those running may be over at once.
            (Role::Duplicate | Role::Concurrency, _, _) => None,
        }
    }

    /// Returns the most weight in any window of this length.
    pub(super) fn most_in_window(self, length_us: u128, costs: Costs) -> u128 {
        match self {
            Self::Window { weight, per_us } => weight.saturating_mul(length_us.div_ceil(per_us)),
            Self::Bucket { capacity, count, per_us } => {
                whole_calls(capacity + count * length_us.saturating_sub(1) / per_us, costs)
            }
            // The last instant of one slot and the first of another are enough to have both.
            Self::Slots { weight, per_us } => {
                let slots = length_us.checked_sub(2).map_or(1, |between| between / per_us + 2);
                weight.saturating_mul(slots)
            }
        }
    }

    /// Returns whether the rule admits every sequence of calls with this supply.
    pub(super) fn is_admitted_by(self, rule: &Rule, costs: Costs) -> bool {
        if rule.role() != Role::Limit {
            return false;
        }
        let count = u128::from(rule.count());
        // A fixed window is a window, too, and so is that of a schedule.
        if let Some(length_us) = longest_window_us(rule) {
            return self.most_in_window(length_us, costs) <= count;
        }
        let Some(per_us) = rule.per().map(|per| per.as_micros()) else { return false };
        match rule.algorithm() {
            // The two slots of a counter are a window of twice the length. And as it weighs the hits of the slot before by
            // the part that the window still covers, one burst and the flow of one slot are enough for it.
            Algorithm::SlidingCounter { .. } => {
                let burst_and_flow = match self.smoothed() {
                    Self::Window { weight, per_us: window_us } => {
                        weight.saturating_mul(window_us + per_us) <= count * window_us
                    }
                    Self::Bucket { capacity, count: flow, per_us: flow_us } => {
                        capacity * flow_us + flow * per_us <= count * flow_us
                    }
                    Self::Slots { .. } => false,
                };
                burst_and_flow || self.most_in_window(2 * per_us, costs) <= count
            }
            // A bucket that is never reset, holds its initial tokens at most and is full at first, holds no more than the
            // bucket of the rule. It admits a burst that it holds and a flow that is no faster than its own.
            Algorithm::TokenBucket(bucket) => {
                let initial = u128::from(bucket.initial_for(rule.count()));
                match self.smoothed() {
                    Self::Window { weight, per_us: window_us } => {
                        weight <= initial && weight.saturating_mul(per_us) <= count * window_us
                    }
                    Self::Bucket { capacity, count: flow, per_us: flow_us } => {
                        capacity <= initial && flow * per_us <= count * flow_us
                    }
                    Self::Slots { .. } => false,
                }
            }
            // How long the windows of this schedule are is not known.
            _ => false,
        }
    }

    /// Returns a bucket that admits all that slots admit: two of them at once, and the flow of one after the other.
    fn smoothed(self) -> Self {
        match self {
            Self::Slots { weight, per_us } => Self::Bucket { capacity: 2 * weight, count: weight, per_us },
            other => other,
        }
    }
}

/// Returns how long a window of the rule is at least, or the `per` of a bucket. A schedule has windows of many lengths.
fn shortest_window_us(rule: &Rule) -> Option<u128> {
    match rule.algorithm() {
        #[cfg(feature = "cron")]
        Algorithm::Cron { schedule } => Some(schedule.shortest_gap_us().into()),
        _ => rule.per().map(|per| per.as_micros()),
    }
}

/// Returns how long the windows of a rule are at most that admits its count in each; `None` if there is no such time, or if
/// it is not known.
pub(super) fn longest_window_us(rule: &Rule) -> Option<u128> {
    match rule.algorithm() {
        Algorithm::SlidingWindow { per } | Algorithm::FixedWindow { per } => Some(per.as_micros()),
        #[cfg(feature = "cron")]
        Algorithm::Cron { schedule } => schedule.longest_gap_us().map(u128::from),
        _ => None,
    }
}

/// Returns the weight of as many whole calls as fit into a weight.
fn whole_calls(weight: u128, costs: Costs) -> u128 {
    match costs {
        Costs::Any | Costs::Recounted => weight,
        Costs::Always(cost) => weight.checked_div(cost.into()).unwrap_or(0) * u128::from(cost),
    }
}

/// Returns whether a bucket may hold more tokens after a reset than have flowed in meanwhile.
fn adds_by_reset(bucket: &TokenBucket, count: u64) -> bool {
    let flowed = u128::from(count) * bucket.reset_after_for(count).as_micros();
    flowed < u128::from(bucket.initial_for(count)) * bucket.per().as_micros()
}
