//! The checks of a rule by itself.

use std::time::Duration;

use crate::algorithm::{Algorithm, Role, TokenBucket};
use crate::duration::format_duration;
use crate::error::{Field, RuleError};
use crate::limits::{MAX_CONCURRENCY, MAX_LEASE, MAX_PER, MIN_LEASE};
use crate::rule::Rule;
use crate::unit::unit_fault;

pub(super) fn check_single(rule: &Rule) -> impl Iterator<Item = RuleError> {
    let bucket = rule
        .bucket()
        .into_iter()
        .flat_map(|bucket| [check_capacity(bucket, rule), check_initial(bucket, rule), check_rate(bucket, rule)]);
    check_count(rule).into_iter().chain(bucket.flatten()).chain(check_uncounted(rule))
}

fn check_count(rule: &Rule) -> Option<RuleError> {
    if rule.count() == 0 && !rule.is_varying() {
        let count = if rule.role() == Role::Concurrency { "limit" } else { "count" };
        return Some(RuleError::new(Field::Count, format!("`{count}` must be at least 1, like `{count} = 10`")));
    }
    if rule.role() == Role::Duplicate && rule.count() > 1 {
        let message = "`count` of `prevent_duplicate` is always 1; remove it, or write a `rule` for more";
        return Some(RuleError::new(Field::Count, message));
    }
    if rule.role() == Role::Concurrency && rule.count() > MAX_CONCURRENCY {
        let message =
            format!("`limit` of `concurrency` is at most {MAX_CONCURRENCY}, as each concurrent call is stored");
        return Some(RuleError::new(Field::Count, message));
    }
    let reason = match rule.algorithm() {
        Algorithm::SlidingWindow { .. } if rule.unit().is_some() => {
            "as a log stores sums of costs in 32 bits; count a larger unit, like kilobytes in place of bytes, or use the \
             algorithm `fixed_window`"
        }
        Algorithm::SlidingWindow { .. } => {
            "as a log stores sums of costs in 32 bits; use the algorithm `fixed_window` for more"
        }
        Algorithm::SlidingCounter { .. } => "so that its arithmetic is exact; shorten `per`",
        // `check_capacity` checks the count, because its bound depends on the other parameters of the bucket.
        Algorithm::TokenBucket(_) => return None,
        #[cfg(feature = "cron")]
        Algorithm::Cron { .. } => "so that its arithmetic is exact",
        Algorithm::FixedWindow { .. } | Algorithm::Concurrency { .. } => "so that its arithmetic is exact",
    };
    let greatest = rule.greatest_count();
    (rule.count() > greatest)
        .then(|| RuleError::new(Field::Count, format!("`count` of this algorithm is at most {greatest}, {reason}")))
}

/// Finds the mistakes in what a rule says beside its count: its unit and its times.
pub(super) fn check_uncounted(rule: &Rule) -> impl Iterator<Item = RuleError> {
    let reset_after = rule.bucket().and_then(|bucket| check_reset_after(bucket, rule));
    let lease = rule.lease().and_then(check_lease);
    [check_shadow(rule), check_unit(rule), check_per(rule), reset_after, lease].into_iter().flatten()
}

fn check_unit(rule: &Rule) -> Option<RuleError> {
    let kind = match rule.role() {
        Role::Limit => {
            let (fault, remedy) = unit_fault(rule.unit()?)?;
            return Some(RuleError::new(Field::Unit, format!("{fault}; {remedy}")));
        }
        Role::Duplicate => "prevent_duplicate",
        Role::Concurrency => "concurrency",
    };
    let unit = rule.unit()?;
    Some(RuleError::new(Field::Unit, format!("`{kind}` counts calls and not `{unit}`; remove the unit")))
}

/// Refuses concurrency in shadow: a lease that is only tried out would have to be held like any other.
fn check_shadow(rule: &Rule) -> Option<RuleError> {
    let message =
        "a limit on concurrent calls is not in shadow by itself; put the whole policy in shadow, or remove `shadow`";
    (rule.is_shadow() && rule.role() == Role::Concurrency).then(|| RuleError::new(Field::Rule, message))
}

fn check_lease(lease: Duration) -> Option<RuleError> {
    if lease < MIN_LEASE {
        let message =
            "`lease` is at least a second, like `lease = \"30s\"`: it is renewed after half of it, over a network";
        return Some(RuleError::new(Field::Lease, message));
    }
    if lease > MAX_LEASE {
        let message = "`lease` is at most an hour, like `lease = \"30s\"`: so long a process that has died keeps it; \
                       a call may take longer, as its lease is renewed";
        return Some(RuleError::new(Field::Lease, message));
    }
    check_duration(Field::Lease, "lease", lease)
}

fn check_per(rule: &Rule) -> Option<RuleError> {
    rule.per().and_then(|per| check_duration(Field::Per, "per", per))
}

pub(super) fn check_duration(field: Field, name: &str, duration: Duration) -> Option<RuleError> {
    if duration.is_zero() {
        Some(RuleError::new(field, format!("`{name}` must be longer than zero, like `{name} = \"60s\"`")))
    } else if duration > MAX_PER {
        Some(RuleError::new(field, format!("`{name}` is at most 3660 days, like `{name} = \"24h\"`")))
    } else if !duration.subsec_nanos().is_multiple_of(1_000) {
        Some(RuleError::new(field, format!("`{name}` must be a whole number of microseconds")))
    } else {
        None
    }
}

fn check_capacity(bucket: &TokenBucket, rule: &Rule) -> Option<RuleError> {
    let field = if bucket.capacity().is_some() { Field::Capacity } else { Field::Count };
    if bucket.capacity() == Some(0) {
        return Some(RuleError::new(field, "`capacity` must be at least 1, like `capacity = 100`"));
    }
    // A varying count becomes at most the greatest exact one, which must be at least 1.
    let count = if rule.is_varying() { 1 } else { rule.count() };
    (count > rule.greatest_count()).then(|| {
        let capacity = bucket.capacity_for(count);
        let message = format!(
            "{capacity} tokens over this `per` are too many to count exactly; write the same rate with a smaller \
             `count` and a shorter `per`"
        );
        RuleError::new(field, message)
    })
}

fn check_initial(bucket: &TokenBucket, rule: &Rule) -> Option<RuleError> {
    let capacity = bucket.capacity().or((rule.count() > 0).then_some(rule.count()));
    match (bucket.initial()?, capacity) {
        (0, _) => Some(RuleError::new(
            Field::Initial,
            "`initial` must be at least 1: tokens flow in only after the first admitted call",
        )),
        (initial, Some(capacity)) if initial > capacity && capacity > 0 => {
            Some(RuleError::new(Field::Initial, format!("`initial` is at most the capacity, which is {capacity}")))
        }
        _ => None,
    }
}

/// Refuses a bucket that is unused again before one token has flowed in: a caller who waits gets the initial tokens, so
/// the rate has no effect.
fn check_rate(bucket: &TokenBucket, rule: &Rule) -> Option<RuleError> {
    let reset_after = bucket.reset_after().filter(|reset_after| !reset_after.is_zero())?;
    let token_us = bucket.per().as_micros().div_ceil(u128::from(rule.count()).max(1));
    let is_limit = rule.count() > 0 && reset_after.as_micros() < token_us;
    let token = format_duration(Duration::from_micros(u64::try_from(token_us).ok()?));
    is_limit.then(|| {
        let message = format!(
            "`{count} per {per}` can never bind: the bucket is unused again after `reset_after`, before it has a token \
             more; write at least `reset_after = \"{token}\"`, the time of one token, or remove it",
            count = rule.count(),
            per = format_duration(bucket.per()),
        );
        RuleError::new(Field::ResetAfter, message)
    })
}

fn check_reset_after(bucket: &TokenBucket, rule: &Rule) -> Option<RuleError> {
    match bucket.reset_after() {
        Some(reset_after) => check_duration(Field::ResetAfter, "reset_after", reset_after),
        None if bucket.fill_time_for(rule.count()) > MAX_PER => Some(RuleError::new(
            Field::Per,
            "the bucket takes more than 3660 days to fill; write a greater `count`, a smaller `capacity`, or \
             `reset_after`",
        )),
        None => None,
    }
}
