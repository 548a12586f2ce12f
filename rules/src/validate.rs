//! The checks of every policy, before it decides anything.

mod ban;
mod binding;
mod checks;
mod prefetch;
mod settings;
mod single_rule;
#[cfg(test)]
mod tests;

pub use self::ban::validate_ban;
pub use self::binding::{Costs, implied_by};
pub(crate) use self::checks::{BindingCheck, Checks, ZeroCounts};
pub use self::prefetch::validate_prefetch;
pub use self::settings::{validate_deadline, validate_longest_pause, validate_warn_at};

use crate::counted_subject::CountedSubject;
use crate::error::RuleError;
use crate::rule::Rule;

/// Finds every mistake in rules of one policy that all count one subject.
///
/// A rule that can never bind is a mistake: it admits whatever the other rules admit, so its limit has no effect.
/// `20 per 1m` can never bind beside `10 per 2m`; nor beside `prevent_duplicate per 5s` if every call costs 1, as no
/// more than 12 calls fit into a minute then; nor `100000 per 1d` beside `1 per 1s bucket`; nor `30 per 1m` beside
/// `10 per fixed 1m`, as no more than two of its windows fall into any minute. It is only a mistake if this is certain:
///
/// * A rule over a longer window than a stricter sliding window is allowed: see [`implied_by`].
/// * A rule whose count [each call gives](Rule::varying) is compared with no other.
/// * If calls may be [refunded or settled](Costs::Recounted), only a sliding window no shorter than the other one keeps
///   it from binding: a call that is settled beyond its cost counts as long as a window is, but only empties a bucket.
/// * Rules of different units are compared with each other as little as those of different subjects, and those of one
///   unit like rules of calls that may be settled.
/// * Only in `UTC` are the ticks of a schedule known to be more than a second apart.
///
/// # Errors
///
/// Returns all mistakes: first those about the policy, then those of the rules in their order.
pub fn validate(rules: &[Rule], costs: Costs) -> Result<(), Vec<RuleError>> {
    let rules: Vec<_> = rules.iter().map(|rule| (CountedSubject::labelled(None), rule)).collect();
    Checks { zero_counts: ZeroCounts::Refused, binding: BindingCheck::Required(costs) }.run(&rules)
}

/// Finds every mistake in the rules of a policy that count several subjects.
///
/// The checks are those of [`validate`], but only rules of one subject are compared, and if the keys are known, those
/// of a subject with those of a wider one: beside `5 per 1m` for all calls, `5 per 1m` for each `{phone}` can never
/// bind. Names are unique across all subjects.
///
/// # Errors
///
/// Returns all mistakes, like [`validate`].
pub fn validate_by_subject(rules: &[(CountedSubject<'_>, Rule)], costs: Costs) -> Result<(), Vec<RuleError>> {
    let rules: Vec<_> = rules.iter().map(|(subject, rule)| (subject.clone(), rule)).collect();
    Checks { zero_counts: ZeroCounts::Refused, binding: BindingCheck::Required(costs) }.run(&rules)
}

/// Returns the rules that decide calls: the enforced ones, or all rules if all are in shadow.
fn deciding<T>(mut rules: Vec<T>, rule: impl Fn(&T) -> &Rule) -> Vec<T> {
    if rules.iter().any(|one| !rule(one).is_shadow()) {
        rules.retain(|one| !rule(one).is_shadow());
    }
    rules
}
