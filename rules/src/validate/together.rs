//! The checks of rules beside each other: which of them bind.

use std::time::Duration;

use super::Mistake;
use crate::{Algorithm, Field, Role, Rule, RuleError, format_duration};

pub(super) fn check_distinct(index: usize, rules: &[Rule]) -> Option<RuleError> {
    let rule = &rules[index];
    rules[..index].iter().any(|earlier| same_window(earlier, rule)).then(|| {
        let window = rule
            .per()
            .map_or_else(|| "the same ticks".into(), |per| format!("the same window of {}", format_duration(per)));
        Mistake::of(Field::Per, format!("two rules count {window}; keep the stricter one")).at(index)
    })
}

pub(super) fn check_can_bind(index: usize, rules: &[Rule]) -> Option<RuleError> {
    let rule = &rules[index];
    if rule.role() != Role::Limit {
        return None;
    }
    let stricter = rules.iter().find(|other| *other != rule && at_least_as_strict(other, rule))?;
    let message = format!(
        "this rule can never bind: {} is at least as strict as {rule}; remove it, or {}",
        words(stricter),
        loosen(stricter),
    );
    Some(Mistake::of(Field::Rule, message).at(index))
}

fn same_window(one: &Rule, other: &Rule) -> bool {
    let same_algorithm = match (one.algorithm(), other.algorithm()) {
        (Algorithm::TokenBucket(one), Algorithm::TokenBucket(other)) => one.per() == other.per(),
        (one, other) => one == other,
    };
    one.role() == other.role() && same_algorithm
}

/// No more in a window that is no shorter: whatever `strict` admits, `rule` admits too.
///
/// Only an exact window says something of every window of its length, and so of those that another rule counts. Of counts
/// that vary nothing is known.
fn at_least_as_strict(strict: &Rule, rule: &Rule) -> bool {
    let windows = match (strict.algorithm(), rule.algorithm()) {
        (
            Algorithm::SlidingWindow { per: strict },
            Algorithm::SlidingWindow { per } | Algorithm::FixedWindow { per },
        ) => strict >= per,
        _ => false,
    };
    // A count of 0 is a mistake of its own.
    let known = !strict.is_varying() && !rule.is_varying() && strict.count() > 0;
    windows && known && strict.count() <= rule.count() && !same_window(strict, rule)
}

fn loosen(stricter: &Rule) -> &'static str {
    match stricter.role() {
        Role::Limit => "raise the other's `count`",
        Role::Duplicate => "that",
    }
}

fn words(rule: &Rule) -> String {
    match rule.role() {
        Role::Limit => rule.to_string(),
        Role::Duplicate => format!("`prevent_duplicate` ({rule})"),
    }
}

/// Returns the position of a rule that already keeps `rules[index]`, though over a shorter window.
///
/// `20 per 120s` beside `10 per 60s` is such a rule: harmless and sometimes clearer, so it is allowed.
#[must_use]
pub fn implied_by(rules: &[Rule], index: usize) -> Option<usize> {
    let Algorithm::SlidingWindow { per: long } = rules.get(index)?.algorithm() else { return None };
    let count = u128::from(rules.get(index)?.count());
    rules.iter().position(|other| {
        let Algorithm::SlidingWindow { per: short } = other.algorithm() else { return false };
        let alike = [other, &rules[index]].iter().all(|rule| rule.role() == Role::Limit && !rule.is_varying());
        alike && short < long && !short.is_zero() && windows(*long, *short) * u128::from(other.count()) <= count
    })
}

/// How many windows of length `short` it takes to cover one of length `long`.
fn windows(long: Duration, short: Duration) -> u128 {
    long.as_nanos().div_ceil(short.as_nanos())
}
