//! The check that each rule can bind beside the others.

use std::time::Duration;

use crate::algorithm::{Algorithm, Role};
use crate::costs::Costs;
use crate::counted_subject::CountedSubject;
use crate::duration::format_duration;
use crate::error::{Field, RuleMistake};
use crate::rule::Rule;
use crate::validate::supply::{Supply, longest_window_us};

/// A rule of a policy, where it stands, and what it counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    pub(super) position: usize,
    pub(super) subject: &'a CountedSubject<'a>,
    pub(super) rule: &'a Rule,
}

/// Checks that a rule may deny a call that all others admit.
pub(super) fn check_can_bind(placed: &Placed<'_>, all: &[Placed<'_>], costs: Costs) -> Option<RuleMistake> {
    let is_to_blame = |stricter: &&Placed<'_>| {
        // Of two rules that admit the same, the later one is the mistake.
        let is_twin = stricter.position > placed.position && placed.keeps_from_binding(stricter, costs);
        stricter.keeps_from_binding(placed, costs) && !is_twin && !stricter.is_known_beside(placed)
    };
    let stricter = all.iter().find(is_to_blame)?;
    Some(RuleMistake::new(Field::Rule, never_binds(placed, stricter, costs)))
}

impl Placed<'_> {
    /// Whether the other rule admits whatever this one admits.
    fn keeps_from_binding(&self, other: &Self, costs: Costs) -> bool {
        // Of all calls that this rule admits, the other one counts some. Each bound on what is admitted holds for these, too.
        other.subject.is_within(self.subject) && implies(self.rule, other.rule, costs)
    }

    /// Whether a rule that this one keeps from binding is reported already, or allowed.
    fn is_known_beside(&self, other: &Self) -> bool {
        self.subject == other.subject && (self.rule.has_same_window(other.rule) || is_clearer(self.rule, other.rule))
    }
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
    let window_us = |rule: &Rule| rule.per().map(|per| per.as_micros()).or_else(|| longest_window_us(rule));
    sliding.role() == Role::Limit && is_sliding && window_us(rule) > window_us(sliding)
}

/// Returns whether the rule admits whatever the stricter one admits.
pub(super) fn implies(stricter: &Rule, rule: &Rule, costs: Costs) -> bool {
    let is_known = !stricter.is_varying() && !rule.is_varying();
    is_known
        && match (stricter.role(), rule.role(), costs) {
            (Role::Concurrency, Role::Concurrency, _) => {
                // A lease that is not renewed ends in both at the same time, or in the rule earlier.
                stricter.count() <= rule.count() && stricter.lease() >= rule.lease()
            }
            (_, _, Costs::Recounted) => counts_as_much(stricter, rule),
            _ => Supply::of(stricter, costs).is_some_and(|supply| supply.is_admitted_by(rule, costs)),
        }
}

/// Returns whether at any time a window counts at least what the rule counts, of which it admits no more: also of calls that
/// were settled beyond their cost.
fn counts_as_much(window: &Rule, rule: &Rule) -> bool {
    let is_window = matches!(window.algorithm(), Algorithm::SlidingWindow { .. });
    // A fixed window is open for no longer than a window of its length counts.
    let is_within = matches!(rule.algorithm(), Algorithm::SlidingWindow { .. } | Algorithm::FixedWindow { .. });
    let are_limits = window.role() == Role::Limit && rule.role() == Role::Limit;
    are_limits && is_window && is_within && rule.per() <= window.per() && window.count() <= rule.count()
}

fn never_binds(placed: &Placed<'_>, stricter: &Placed<'_>, costs: Costs) -> String {
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

/// Returns what the stricter rule admits at most in a window of the rule, unless they have the same, and how long that is.
fn most(rule: &Rule, stricter: &Rule, costs: Costs) -> Option<(u128, String)> {
    let length_us = longest_window_us(rule)?;
    let is_same = matches!(stricter.algorithm(), Algorithm::SlidingWindow { .. })
        && stricter.per().is_some_and(|per| per.as_micros() == length_us);
    let supply = Supply::of(stricter, costs).filter(|_| !is_same)?;
    let length = Duration::from_micros(u64::try_from(length_us).ok()?);
    Some((supply.most_in_window(length_us, costs), format_duration(length)))
}
