//! The check that each rule can bind beside the others. It compares the most that rules admit.
//!
//! Times are whole microseconds. A window of length `x` contains the instants `(t − x, t]`, so its first and its last
//! hit are at most `x − 1` apart.

use std::time::Duration;

use crate::algorithm::{Algorithm, Role, TokenBucket};
use crate::counted_subject::CountedSubject;
use crate::duration::format_duration;
use crate::error::{Field, RuleError};
use crate::rule::Rule;

/// The known costs, in calls, of the calls that a policy decides.
///
/// Costs decide which rules can bind: beside `prevent_duplicate per 5s`, at most 12 calls fit into 60 seconds, but they
/// weigh more if calls may cost more than 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Costs {
    /// Every call has this cost: 1, unless the attribute has a `cost`.
    Always(u64),
    /// Each call may have another cost.
    Any,
    /// Each call may have another cost, and may be refunded or settled later, as in a check by hand. Then a rule may
    /// count more than it admits, and count it longer than another rule.
    Recounted,
}

impl Costs {
    /// Returns the costs in a unit, where these are the costs in calls. Most units are settled, so nothing is known of
    /// their costs.
    fn in_unit(self, unit: Option<&str>) -> Self {
        if unit.is_some() { Self::Recounted } else { self }
    }
}

/// The most that a rule admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Supply {
    /// At most `weight` in any window of length `per_us`.
    Window { weight: u128, per_us: u128 },
    /// At most `capacity + count · x / per_us` between two hits that are `x` apart.
    Bucket { capacity: u128, count: u128, per_us: u128 },
    /// At most `weight` in each of several consecutive windows, which begin at least `per_us` apart.
    Slots { weight: u128, per_us: u128 },
}

impl Supply {
    /// Returns the most that a rule admits; `None` if that is not known, or if it admits no call of these costs.
    pub(super) fn from_rule(rule: &Rule, costs: Costs) -> Option<Self> {
        let count = u128::from(rule.count());
        let per_us = shortest_window_us(rule)?;
        let slots = || {
            let weight = whole_calls(count, costs);
            (weight > 0).then_some(Self::Slots { weight, per_us })
        };
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
            // The windows of a counter are its slots, because none of them admits more.
            (Role::Limit, Algorithm::SlidingCounter { .. } | Algorithm::FixedWindow { .. }, _) => slots(),
            #[cfg(feature = "cron")]
            (Role::Limit, Algorithm::Cron { .. }, _) => slots(),
            // Calls that pass `prevent_duplicate` may have any weight, and running calls may end at once.
            (Role::Duplicate | Role::Concurrency, _, _) | (Role::Limit, Algorithm::Concurrency { .. }, _) => None,
        }
    }

    /// Returns the most weight in any window of this length.
    pub(super) fn most_in_window(self, length_us: u128, costs: Costs) -> u128 {
        match self {
            Self::Window { weight, per_us } => weight.saturating_mul(length_us.div_ceil(per_us)),
            Self::Bucket { capacity, count, per_us } => {
                whole_calls(capacity + count * length_us.saturating_sub(1) / per_us, costs)
            }
            // A window of two instants can contain the end of one slot and the start of the next.
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
        // Fixed windows and those of a schedule are bounded like sliding ones.
        if let Some(length_us) = longest_window_us(rule) {
            return self.most_in_window(length_us, costs) <= count;
        }
        let Some(per_us) = rule.per().map(|per| per.as_micros()) else { return false };
        match rule.algorithm() {
            // The two slots of a counter are a window of twice the length. But the counter weighs the hits of the
            // earlier slot by the part that the window still covers, so one burst and the flow of one slot fit, too.
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
            // A bucket with a capacity of the initial tokens that is full at first and never reset holds no more than
            // the rule's bucket. It admits a burst that it holds, and a flow that is no faster than its own.
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
            // The length of this schedule's windows is not known.
            #[cfg(feature = "cron")]
            Algorithm::Cron { .. } => false,
            Algorithm::SlidingWindow { .. } | Algorithm::FixedWindow { .. } | Algorithm::Concurrency { .. } => false,
        }
    }

    /// Returns a bucket that admits all that slots admit: two slots at once, then a flow of one after the other.
    fn smoothed(self) -> Self {
        match self {
            Self::Slots { weight, per_us } => Self::Bucket { capacity: 2 * weight, count: weight, per_us },
            other => other,
        }
    }
}

/// Returns the length of the rule's shortest window, or a bucket's `per`. A schedule has windows of many lengths.
fn shortest_window_us(rule: &Rule) -> Option<u128> {
    #[cfg(feature = "cron")]
    if let Some(schedule) = rule.schedule() {
        return Some(schedule.shortest_gap_us().into());
    }
    rule.per().map(|per| per.as_micros())
}

/// Returns the length of the longest window in which the rule admits its count; `None` if there is no such window, or
/// if its length is not known.
pub(super) fn longest_window_us(rule: &Rule) -> Option<u128> {
    match rule.algorithm() {
        Algorithm::SlidingWindow { per } | Algorithm::FixedWindow { per } => Some(per.as_micros()),
        #[cfg(feature = "cron")]
        Algorithm::Cron { schedule } => schedule.longest_gap_us().map(u128::from),
        Algorithm::SlidingCounter { .. } | Algorithm::TokenBucket(_) | Algorithm::Concurrency { .. } => None,
    }
}

/// Rounds a weight down to whole calls.
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

/// A rule of a policy with its position and its subject.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleInPolicy<'a> {
    pub(super) position: usize,
    pub(super) subject: &'a CountedSubject<'a>,
    pub(super) rule: &'a Rule,
}

/// Checks that a rule may deny a call that all others admit. Rules in shadow deny nothing, and each is tried out alone.
pub(super) fn check_can_bind(placed: &RuleInPolicy<'_>, all: &[RuleInPolicy<'_>], costs: Costs) -> Option<RuleError> {
    let costs = costs.in_unit(placed.rule.unit());
    let is_to_blame = |stricter: &&RuleInPolicy<'_>| {
        // If two rules admit the same calls, the later one is the mistake.
        let is_twin = stricter.position > placed.position
            && !placed.rule.is_shadow()
            && placed.keeps_from_binding(stricter, costs);
        !stricter.rule.is_shadow()
            && stricter.keeps_from_binding(placed, costs)
            && !is_twin
            && !stricter.is_reported_or_allowed_beside(placed)
    };
    let stricter = all.iter().find(is_to_blame)?;
    Some(RuleError::new(Field::Rule, never_binds(placed, stricter, costs)))
}

impl RuleInPolicy<'_> {
    /// Whether the other rule admits whatever this one admits.
    fn keeps_from_binding(&self, other: &Self, costs: Costs) -> bool {
        // The other rule counts a part of this rule's calls, so a bound on all of them holds for the part, too.
        other.subject.is_within(self.subject) && implies(self.rule, other.rule, costs)
    }

    /// Whether the other rule, which this one keeps from binding, is already reported or allowed.
    fn is_reported_or_allowed_beside(&self, other: &Self) -> bool {
        self.subject == other.subject
            && (self.rule.has_same_window(other.rule) && !other.rule.is_shadow()
                || states_longer_window(self.rule, other.rule))
    }
}

/// Returns the position of a sliding window that is shorter than the window of `rules[position]` and already enforces
/// that rule.
///
/// `20 per 120s` beside `10 per 60s` is such a rule: it can never bind, because two windows of 60 seconds cover one of
/// 120 seconds. [`validate`](crate::validate()) allows it, because it does no harm and people write policies like this
/// to state the limit of the longer window.
#[must_use]
pub fn implied_by(rules: &[Rule], position: usize) -> Option<usize> {
    let rule = rules.get(position)?;
    rules.iter().position(|other| states_longer_window(other, rule) && implies(other, rule, Costs::Any))
}

/// Returns whether the rule's window is longer than that of the sliding window.
fn states_longer_window(sliding: &Rule, rule: &Rule) -> bool {
    let window_us = |rule: &Rule| rule.per().map(|per| per.as_micros()).or_else(|| longest_window_us(rule));
    sliding.role() == Role::Limit && sliding.is_sliding_window() && window_us(rule) > window_us(sliding)
}

/// Returns whether the rule admits whatever the stricter one admits.
pub(super) fn implies(stricter: &Rule, rule: &Rule, costs: Costs) -> bool {
    let is_known = !stricter.is_varying() && !rule.is_varying();
    is_known
        && stricter.unit() == rule.unit()
        && match (stricter.role(), rule.role(), costs) {
            (Role::Concurrency, Role::Concurrency, _) => {
                // A lease that is not renewed ends in both rules at one time, or earlier in `rule`.
                stricter.count() <= rule.count() && stricter.lease() >= rule.lease()
            }
            (_, _, Costs::Recounted) => counts_as_much(stricter, rule),
            _ => Supply::from_rule(stricter, costs).is_some_and(|supply| supply.is_admitted_by(rule, costs)),
        }
}

/// Returns whether the window always counts at least what the rule counts, and admits no more than the rule, even if
/// calls were settled beyond their cost.
fn counts_as_much(window: &Rule, rule: &Rule) -> bool {
    // A fixed window is not open for longer than a sliding window of its length counts.
    let is_within = rule.is_sliding_window() || matches!(rule.algorithm(), Algorithm::FixedWindow { .. });
    let are_limits = window.role() == Role::Limit && rule.role() == Role::Limit;
    are_limits
        && window.is_sliding_window()
        && is_within
        && rule.per() <= window.per()
        && window.count() <= rule.count()
}

fn never_binds(placed: &RuleInPolicy<'_>, stricter: &RuleInPolicy<'_>, costs: Costs) -> String {
    let who = if stricter.subject == placed.subject {
        format!("`{:#}`", stricter.rule)
    } else {
        format!("`{:#}` counts {} and", stricter.rule, stricter.subject.in_words())
    };
    let most = most(placed.rule, stricter.rule, costs);
    let reason = match &most {
        Some((most, per)) => format!("{who} admits at most {most} per {per}"),
        None if stricter.subject == placed.subject => format!("{who} is at least as strict as `{:#}`", placed.rule),
        None => {
            format!("{who} is at least as strict as `{:#}` for {}", placed.rule, placed.subject.in_words())
        }
    };
    let remedy = match (stricter.rule.role(), most) {
        (Role::Concurrency, _) => ", or raise the other's `limit`",
        (Role::Limit, _) => ", or raise the other's `count`",
        (Role::Duplicate, Some((2.., _))) => ", or lower its `count`",
        (Role::Duplicate, _) => "",
    };
    format!("this rule can never bind: {reason}; remove it{remedy}")
}

/// Returns the most that the stricter rule admits in a window of the rule, and its length; `None` if both have that
/// window.
fn most(rule: &Rule, stricter: &Rule, costs: Costs) -> Option<(u128, String)> {
    let length_us = longest_window_us(rule)?;
    let is_same = stricter.is_sliding_window() && stricter.per().is_some_and(|per| per.as_micros() == length_us);
    let supply = Supply::from_rule(stricter, costs).filter(|_| !is_same)?;
    let length = Duration::from_micros(u64::try_from(length_us).ok()?);
    Some((supply.most_in_window(length_us, costs), format_duration(length)))
}
