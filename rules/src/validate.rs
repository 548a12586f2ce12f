//! The checks that every policy passes before it decides anything.

mod alone;
mod ban;
mod binding;
mod checks;
mod deadline;
mod distinct;
mod supply;
#[cfg(test)]
mod tests;
mod warn_at;

pub use self::ban::validate_ban;
pub use self::binding::implied_by;
pub(crate) use self::checks::{Binding, Checks, ZeroCounts};
pub use self::deadline::validate_deadline;
pub use self::warn_at::validate_warn_at;

use crate::costs::Costs;
use crate::error::RuleError;
use crate::rule::Rule;

/// Finds every mistake in the rules of one policy that all count the same subject.
///
/// A rule that can never bind is a mistake, because it suggests a limit that has no effect: whatever the other rules
/// admit, it admits, too. `20 per 1m` can never bind beside `10 per 2m`; nor beside `prevent_duplicate per 5s` if every
/// call costs 1, as no more than 12 calls fit into a minute then; nor `100000 per 1d` beside `1 per 1s bucket`. Refunds
/// are not considered. Two cases are no mistakes:
///
/// * A rule over a longer window than a stricter sliding window: see [`implied_by`].
/// * A rule beside a schedule, a sliding counter, a fixed window, or a count that [each call gives](Rule::varying): what
///   these admit in another window is not computed.
///
/// # Errors
///
/// Returns all mistakes: those about the policy first, and the others in the order of the rules.
pub fn validate(rules: &[Rule], costs: Costs) -> Result<(), Vec<RuleError>> {
    let rules: Vec<_> = rules.iter().map(|rule| ((), rule)).collect();
    Checks { zero_counts: ZeroCounts::Refused, binding: Binding::Required(costs) }.run(&rules)
}

/// Finds every mistake in the rules of a policy that count several subjects.
///
/// It is [`validate`], but only rules of the same subject are compared. Names are unique across all subjects.
///
/// # Errors
///
/// Returns all mistakes, like [`validate`].
pub fn validate_by_subject<S: PartialEq>(rules: &[(S, Rule)], costs: Costs) -> Result<(), Vec<RuleError>> {
    let rules: Vec<_> = rules.iter().map(|(subject, rule)| (subject, rule)).collect();
    Checks { zero_counts: ZeroCounts::Refused, binding: Binding::Required(costs) }.run(&rules)
}
