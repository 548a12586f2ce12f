//! The checks of every policy, before it decides anything.

mod ban;
mod binding;
mod prefetch;
mod settings;
mod single_rule;
#[cfg(test)]
mod tests;

pub use self::ban::validate_ban;
pub use self::binding::{Costs, implied_by};
pub use self::prefetch::validate_prefetch;
pub use self::settings::{validate_deadline, validate_longest_pause, validate_warn_at};

use self::binding::{RuleInPolicy, check_can_bind};
use self::single_rule::{check_single, check_uncounted};
use crate::counted_subject::CountedSubject;
use crate::duration::format_duration;
use crate::error::{Field, RuleError};
use crate::limits::{MAX_NAME_BYTES, MAX_RULES};
use crate::rule::Rule;
use crate::template::is_blank;

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
    Checks::Policy(costs).run(&rules)
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
    Checks::Policy(costs).run(&rules)
}

/// Returns the rules that decide calls: the enforced ones, or all rules if all are in shadow.
fn deciding<T>(mut rules: Vec<T>, rule: impl Fn(&T) -> &Rule) -> Vec<T> {
    if rules.iter().any(|one| !rule(one).is_shadow()) {
        rules.retain(|one| !rule(one).is_shadow());
    }
    rules
}

/// The checks of rules, by what the rules are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    /// The rules of a policy whose calls have these costs.
    Policy(Costs),
    /// The rules of an override, of which a count of 0 admits nothing.
    Override,
    /// All rules that are in force beside an override. They need not be able to bind.
    Effective,
}

impl Checks {
    /// Checks rules, each with its subject.
    pub(crate) fn run(self, rules: &[(CountedSubject<'_>, &Rule)]) -> Result<(), Vec<RuleError>> {
        let mut errors: Vec<_> = check_number(rules.len()).into_iter().collect();
        if rules.len() > MAX_RULES {
            // The comparison of each rule with all others takes long if there are many.
            return Err(errors);
        }
        let mut sound: Vec<RuleInPolicy<'_>> = Vec::new();
        for (position, (subject, rule)) in rules.iter().enumerate() {
            let earlier = rules[..position].iter().map(|(_, rule)| *rule);
            let name = check_name(rule, earlier);
            let alone = self.check_single(rule);
            if alone.is_empty() && (rule.count() > 0 || rule.is_varying()) {
                sound.push(RuleInPolicy { position, subject, rule });
            }
            errors.extend(name.into_iter().chain(alone).map(|mistake| mistake.in_rule(position)));
        }
        // Only rules without mistakes of their own are compared.
        for placed in &sound {
            errors.extend(self.check_beside(placed, &sound).map(|mistake| mistake.in_rule(placed.position)));
        }
        RuleError::all_or_none(errors)
    }

    fn check_single(self, rule: &Rule) -> Vec<RuleError> {
        let is_closed = rule.count() == 0 && !rule.is_varying();
        match self {
            Self::Override | Self::Effective if is_closed => check_uncounted(rule).collect(),
            _ => check_single(rule).collect(),
        }
    }

    /// Compares a rule with all rules, itself included.
    fn check_beside(self, placed: &RuleInPolicy<'_>, all: &[RuleInPolicy<'_>]) -> Option<RuleError> {
        let is_earlier =
            |other: &&RuleInPolicy<'_>| other.position < placed.position && other.subject == placed.subject;
        // A rule in shadow may have the window of an enforced rule.
        let is_alike = |other: &&RuleInPolicy<'_>| other.rule.is_shadow() == placed.rule.is_shadow();
        let earlier = all.iter().filter(is_earlier).filter(is_alike).map(|other| other.rule);
        check_window(placed.rule, earlier).or_else(|| match self {
            Self::Policy(costs) => check_can_bind(placed, all, costs),
            // The costs of the policy's calls are not known here.
            Self::Override => check_can_bind(placed, all, Costs::Recounted),
            Self::Effective => None,
        })
    }
}

fn check_number(rules: usize) -> Option<RuleError> {
    let message = match rules {
        0 => "a policy needs at least one rule, like `rule(count = 10, per = \"60s\")`".to_owned(),
        1..=MAX_RULES => return None,
        _ => format!("a policy has at most {MAX_RULES} rules, but this one has {rules}; split it up"),
    };
    Some(RuleError::new(Field::Rule, message))
}

/// Checks that no earlier rule of the policy has the same name.
fn check_name<'a>(rule: &Rule, mut earlier: impl Iterator<Item = &'a Rule>) -> Option<RuleError> {
    let name = rule.name()?;
    let message = if is_blank(name) {
        "`name` of a rule must not be empty; leave it out, or write one, like `name = \"daily\"`".to_owned()
    } else if name.len() > MAX_NAME_BYTES {
        format!("`name` of a rule has {MAX_NAME_BYTES} bytes at most, and this one has {}; shorten it", name.len())
    } else if earlier.any(|other| other.name() == Some(name)) {
        format!("two rules have the name `{name}`; rename one, so that a rejection identifies its rule")
    } else {
        return None;
    };
    Some(RuleError::new(Field::Name, message))
}

/// Checks that no earlier rule of the subject counts the same unit and window by the same algorithm.
fn check_window<'a>(rule: &Rule, mut earlier: impl Iterator<Item = &'a Rule>) -> Option<RuleError> {
    earlier.any(|other| other.has_same_window(rule)).then(|| {
        let window = match rule.per() {
            Some(per) => format!("the same window of {}", format_duration(per)),
            None if rule.lease().is_some() => "the concurrent calls of one subject".to_owned(),
            None => "the windows of the same schedule".to_owned(),
        };
        let of_unit = rule.unit().map(|unit| format!(" of `{unit}`")).unwrap_or_default();
        RuleError::new(Field::Per, format!("two rules count {window}{of_unit}; keep the stricter one"))
    })
}
