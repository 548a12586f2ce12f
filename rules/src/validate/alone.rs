//! The checks of a rule by itself.

use std::time::Duration;

use super::{MAX_PER, Mistake};
use crate::{Algorithm, Field, Rule, TokenBucket};

/// The mistakes in a rule by itself.
pub(super) fn check_alone(rule: &Rule) -> impl Iterator<Item = Mistake> {
    let bucket = match rule.algorithm() {
        Algorithm::TokenBucket(bucket) => [check_capacity(bucket, rule), check_initial(bucket, rule)],
        _ => [None, None],
    };
    check_count(rule).into_iter().chain(bucket.into_iter().flatten()).chain(check_times(rule))
}

fn check_count(rule: &Rule) -> Option<Mistake> {
    let reason = match rule.algorithm() {
        Algorithm::SlidingWindow { .. } => "as it remembers every hit; use the algorithm `sliding_counter` for more",
        Algorithm::SlidingCounter { .. } => "so that its arithmetic stays exact; shorten `per`",
        // It depends on the other parts of the bucket, which are checked together.
        Algorithm::TokenBucket(_) => "",
        _ => "so that its arithmetic stays exact",
    };
    match (rule.count(), rule.greatest_count()) {
        (0, _) if !rule.is_varying() => {
            Some(Mistake::of(Field::Count, "`count` must be at least 1, like `count = 10`"))
        }
        (count, greatest) if count > greatest && !reason.is_empty() => {
            Some(Mistake::of(Field::Count, format!("`count` of this algorithm is at most {greatest}, {reason}")))
        }
        _ => None,
    }
}

/// The mistakes in a rule's times.
pub(crate) fn check_times(rule: &Rule) -> impl Iterator<Item = Mistake> {
    let reset_after = match rule.algorithm() {
        Algorithm::TokenBucket(bucket) => check_reset_after(bucket, rule),
        _ => None,
    };
    check_per(rule).into_iter().chain(reset_after)
}

fn check_per(rule: &Rule) -> Option<Mistake> {
    rule.per().and_then(|per| check_duration(Field::Per, "per", per))
}

pub(crate) fn check_duration(field: Field, name: &str, duration: Duration) -> Option<Mistake> {
    if duration.is_zero() {
        Some(Mistake::of(field, format!("`{name}` must be longer than zero, like `{name} = \"60s\"`")))
    } else if duration > MAX_PER {
        Some(Mistake::of(field, format!("`{name}` is at most 3660 days, like `{name} = \"24h\"`")))
    } else if !duration.subsec_nanos().is_multiple_of(1_000) {
        Some(Mistake::of(field, format!("`{name}` must be a whole number of microseconds")))
    } else {
        None
    }
}

fn check_capacity(bucket: &TokenBucket, rule: &Rule) -> Option<Mistake> {
    let field = if bucket.capacity_set().is_some() { Field::Capacity } else { Field::Count };
    if bucket.capacity_set() == Some(0) {
        return Some(Mistake::of(field, "`capacity` must be at least 1, like `capacity = 100`"));
    }
    // A count that varies is clamped to what is exact; there has to be something left.
    let count = if rule.is_varying() { 1 } else { rule.count() };
    (count > rule.greatest_count()).then(|| {
        let (capacity, remedy) =
            (bucket.capacity_or(count), "say the same rate with a smaller `count` and a shorter `per`");
        Mistake::of(field, format!("{capacity} tokens over this `per` are too many to count exactly; {remedy}"))
    })
}

fn check_initial(bucket: &TokenBucket, rule: &Rule) -> Option<Mistake> {
    let capacity = bucket.capacity_set().or((rule.count() > 0).then_some(rule.count()));
    match (bucket.initial_set()?, capacity) {
        (0, _) => Some(Mistake::of(
            Field::Initial,
            "`initial` must be at least 1: tokens flow in from the first admitted call on",
        )),
        (initial, Some(capacity)) if initial > capacity && capacity > 0 => {
            Some(Mistake::of(Field::Initial, format!("`initial` is at most the capacity, which is {capacity}")))
        }
        _ => None,
    }
}

fn check_reset_after(bucket: &TokenBucket, rule: &Rule) -> Option<Mistake> {
    match bucket.reset_after_set() {
        Some(reset_after) => check_duration(Field::ResetAfter, "reset_after", reset_after),
        None if bucket.fill_time(rule.count()) > MAX_PER => Some(Mistake::of(
            Field::Per,
            "the bucket takes more than 3660 days to fill; let more tokens in, hold fewer, or say `reset_after`",
        )),
        None => None,
    }
}
