//! The checks that every policy passes before it decides anything: one function, one check.

mod alone;
#[cfg(test)]
mod tests;
mod together;

use std::time::Duration;

pub(crate) use self::alone::{check_duration, check_times};
pub use self::together::implied_by;

use self::alone::check_alone;
use self::together::{check_can_bind, check_distinct};
use crate::{Field, Rule, RuleError};

/// The most rules of one policy.
pub const MAX_RULES: usize = 64;

/// The longest window: 3,660 days. Sums of times stay far below 2^53 microseconds, where Lua's numbers are exact.
pub const MAX_PER: Duration = Duration::from_secs(3_660 * 86_400);

/// The greatest count of an exact sliding window, which remembers every unit it admitted.
pub const MAX_SLIDING_COUNT: u64 = 1_000_000;

/// The greatest count of a sliding counter, 2^26: the product of two counts is exact.
pub const MAX_COUNTER_COUNT: u64 = 1 << 26;

/// The greatest integer that is exact in Lua, and so in every tally: 2^53 − 1.
pub const MAX_EXACT: u64 = (1 << 53) - 1;

/// Finds every mistake in the rules of one policy.
///
/// # Errors
///
/// Returns all the mistakes, those about the policy first and the others in the order of the rules.
pub fn validate(rules: &[Rule]) -> Result<(), Vec<RuleError>> {
    let mut errors = Vec::new();
    errors.extend(check_number(rules));
    for (index, rule) in rules.iter().enumerate() {
        errors.extend(check_name(index, rules));
        let alone: Vec<_> = check_alone(rule).map(|mistake| mistake.at(index)).collect();
        // What is wrong by itself is not worth comparing with its neighbours.
        if alone.is_empty() {
            errors.extend(check_distinct(index, rules).or_else(|| check_can_bind(index, rules)));
        }
        errors.extend(alone);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Finds every mistake in the rules of a policy that counts several subjects: only rules of one subject are compared.
///
/// # Errors
///
/// As of [`validate`].
pub fn validate_by_subject<S: PartialEq>(rules: &[(S, Rule)]) -> Result<(), Vec<RuleError>> {
    let all: Vec<_> = rules.iter().map(|(_, rule)| rule.clone()).collect();
    if let Some(mistake) = check_number(&all) {
        return Err(vec![mistake]);
    }
    let mut errors = Vec::new();
    for (first, (subject, _)) in rules.iter().enumerate() {
        if rules[..first].iter().any(|(earlier, _)| earlier == subject) {
            continue;
        }
        let positions: Vec<_> = (first..rules.len()).filter(|&at| rules[at].0 == *subject).collect();
        let own: Vec<_> = positions.iter().map(|&at| all[at].clone()).collect();
        for mistake in validate(&own).err().into_iter().flatten() {
            let rule = mistake.rule.and_then(|at| positions.get(at).copied());
            errors.push(RuleError { rule, ..mistake });
        }
    }
    // A rejection names a rule, whatever subject that counts.
    for index in 0..all.len() {
        let is_told = |error: &RuleError| error.rule == Some(index) && error.field == Field::Name;
        if !errors.iter().any(is_told) {
            errors.extend(check_name(index, &all));
        }
    }
    errors.sort_by_key(RuleError::rule);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// A mistake in a rule by itself.
pub(crate) struct Mistake(Field, String);

impl Mistake {
    pub(crate) fn of(field: Field, message: impl Into<String>) -> Self {
        Self(field, message.into())
    }

    pub(crate) fn of_the_policy(self) -> RuleError {
        RuleError { rule: None, field: self.0, message: self.1 }
    }

    pub(crate) fn at(self, index: usize) -> RuleError {
        RuleError { rule: Some(index), field: self.0, message: self.1 }
    }
}

fn check_number(rules: &[Rule]) -> Option<RuleError> {
    let message = match rules.len() {
        0 => "a policy needs at least one rule, like `rule(count = 10, per = \"60s\")`".into(),
        1..=MAX_RULES => return None,
        number => format!("a policy has at most {MAX_RULES} rules, and this has {number}; split it up"),
    };
    Some(RuleError { rule: None, field: Field::Rule, message })
}

fn check_name(index: usize, rules: &[Rule]) -> Option<RuleError> {
    let name = rules[index].name()?;
    let message = if name.is_empty() {
        "`name` of a rule must not be empty; leave it out, or write one, like `name = \"daily\"`".to_owned()
    } else if rules[..index].iter().any(|earlier| earlier.name() == Some(name)) {
        format!("two rules are named `{name}`; rename one, so that a rejection tells them apart")
    } else {
        return None;
    };
    Some(Mistake::of(Field::Name, message).at(index))
}
