//! The check that each rule can bind beside the others.

use crate::algorithm::{Algorithm, Role};
use crate::costs::Costs;
use crate::duration::format_duration;
use crate::error::{Field, Mistake};
use crate::rule::Rule;
use crate::validate::supply::Supply;

/// Checks that a rule may deny a call that the other rules of its subject admit.
pub(super) fn check_can_bind<'a>(
    position: usize,
    rule: &Rule,
    beside: impl Iterator<Item = (usize, &'a Rule)>,
    costs: Costs,
) -> Option<Mistake> {
    let is_stricter = |&(other, stricter): &(usize, &Rule)| {
        // Of two rules that admit the same, the later one is the mistake.
        let is_twin = other > position && implies(rule, stricter, costs);
        let is_known = stricter.has_same_window(rule) || is_clearer(stricter, rule);
        implies(stricter, rule, costs) && !is_twin && !is_known
    };
    let (_, stricter) = { beside }.find(is_stricter)?;
    Some(Mistake::new(Field::Rule, never_binds(rule, stricter, costs)))
}

/// Returns the position of a sliding window that is shorter than the window of `rules[position]` and already enforces
/// that rule.
///
/// `20 per 120s` beside `10 per 60s` is such a rule: it can never bind, as two windows of 60 seconds cover one of 120
/// seconds. [`validate`](crate::validate()) allows it, because it does no harm, and policies are written like this to
/// state the limit of the longer window.
#[must_use]
pub fn implied_by(rules: &[Rule], position: usize) -> Option<usize> {
    let rule = rules.get(position)?;
    rules.iter().position(|other| is_clearer(other, rule) && implies(other, rule, Costs::Any))
}

/// Returns whether the rule states a limit for a longer window than a sliding window.
fn is_clearer(sliding: &Rule, rule: &Rule) -> bool {
    let is_sliding = matches!(sliding.algorithm(), Algorithm::SlidingWindow { .. });
    sliding.role() == Role::Limit && is_sliding && rule.per() > sliding.per()
}

/// Returns whether the rule admits whatever the stricter one admits.
fn implies(stricter: &Rule, rule: &Rule, costs: Costs) -> bool {
    Supply::of(stricter, costs).is_some_and(|supply| !rule.is_varying() && supply.is_admitted_by(rule, costs))
}

fn never_binds(rule: &Rule, stricter: &Rule, costs: Costs) -> String {
    let is_window = matches!(rule.algorithm(), Algorithm::SlidingWindow { .. } | Algorithm::FixedWindow { .. });
    let most = match (rule.per(), Supply::of(stricter, costs)) {
        (Some(per), Some(supply)) if is_window && rule.per() != stricter.per() => {
            Some((supply.most_in_window(per.as_micros(), costs), format_duration(per)))
        }
        _ => None,
    };
    let reason = match &most {
        Some((most, per)) => format!("`{stricter:#}` admits at most {most} per {per}"),
        None => format!("`{stricter:#}` is at least as strict as `{rule:#}`"),
    };
    let remedy = match (stricter.role(), most) {
        (Role::Limit | Role::Concurrency, _) => ", or raise the other's `count`",
        (Role::Duplicate, Some((2.., _))) => ", or lower its `count`",
        (Role::Duplicate, _) => "",
    };
    format!("this rule can never bind: {reason}; remove it{remedy}")
}
