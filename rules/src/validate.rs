//! The checks that every policy passes before it decides anything: one function, one check.

use std::time::Duration;

use crate::{Field, Role, Rule, RuleError, format_duration};

/// The longest window: 3,660 days. Sums of times stay far below 2^53 microseconds, where Lua's numbers are exact.
pub const MAX_PER: Duration = Duration::from_secs(3_660 * 86_400);

/// The greatest count of an exact sliding window, which remembers every unit it admitted.
pub const MAX_SLIDING_COUNT: u64 = 1_000_000;

/// Finds every mistake in the rules of one policy.
///
/// # Errors
///
/// Returns all the mistakes, those about the policy first and the others in the order of the rules.
pub fn validate(rules: &[Rule]) -> Result<(), Vec<RuleError>> {
    let mut errors = Vec::new();
    errors.extend(check_any_limit(rules));
    for (index, rule) in rules.iter().enumerate() {
        let alone = [check_count(index, rule), check_per(index, rule)];
        let sound = alone.iter().all(Option::is_none);
        errors.extend(alone.into_iter().flatten());
        // What is wrong by itself is not worth comparing with its neighbours.
        if sound {
            errors.extend(check_distinct(index, rules).or_else(|| check_can_bind(index, rules)));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn check_any_limit(rules: &[Rule]) -> Option<RuleError> {
    rules.is_empty().then(|| RuleError {
        rule: None,
        field: Field::Rule,
        message: "a policy needs at least one rule, like `rule(count = 10, per = \"60s\")`".into(),
    })
}

fn check_count(index: usize, rule: &Rule) -> Option<RuleError> {
    let message = match rule.count() {
        0 => "`count` must be at least 1, like `count = 10`".into(),
        count if count > MAX_SLIDING_COUNT => {
            format!("`count` of a sliding window is at most {MAX_SLIDING_COUNT}, as it remembers every hit")
        }
        _ => return None,
    };
    Some(RuleError { rule: Some(index), field: Field::Count, message })
}

fn check_per(index: usize, rule: &Rule) -> Option<RuleError> {
    let per = rule.per();
    let message = if per.is_zero() {
        "`per` must be longer than zero, like `per = \"60s\"`"
    } else if per > MAX_PER {
        "`per` is at most 3660 days, like `per = \"24h\"`"
    } else if !per.subsec_nanos().is_multiple_of(1_000) {
        "`per` must be a whole number of microseconds"
    } else {
        return None;
    };
    Some(RuleError { rule: Some(index), field: Field::Per, message: message.into() })
}

fn check_distinct(index: usize, rules: &[Rule]) -> Option<RuleError> {
    let rule = &rules[index];
    rules[..index].iter().any(|earlier| same_window(earlier, rule)).then(|| RuleError {
        rule: Some(index),
        field: Field::Per,
        message: format!("two rules count the same window of {}; keep the stricter one", format_duration(rule.per())),
    })
}

fn check_can_bind(index: usize, rules: &[Rule]) -> Option<RuleError> {
    let rule = &rules[index];
    if rule.role() != Role::Limit {
        return None;
    }
    let stricter = rules.iter().find(|other| *other != rule && at_least_as_strict(other, rule))?;
    Some(RuleError {
        rule: Some(index),
        field: Field::Rule,
        message: format!(
            "this rule can never bind: {} is at least as strict as {}; remove it, or {}",
            words(stricter),
            words(rule),
            loosen(stricter)
        ),
    })
}

fn same_window(one: &Rule, other: &Rule) -> bool {
    one.role() == other.role() && one.algorithm() == other.algorithm()
}

/// No more in a window that is no shorter: whatever `strict` admits, `rule` admits too.
fn at_least_as_strict(strict: &Rule, rule: &Rule) -> bool {
    strict.count() <= rule.count() && strict.per() >= rule.per() && !same_window(strict, rule)
}

fn loosen(stricter: &Rule) -> &'static str {
    match stricter.role() {
        Role::Limit => "raise the other's `count`",
        Role::Duplicate => "that",
    }
}

fn words(rule: &Rule) -> String {
    let per = format_duration(rule.per());
    match rule.role() {
        Role::Limit => format!("{} per {per}", rule.count()),
        Role::Duplicate => format!("`prevent_duplicate` (1 per {per})"),
    }
}

/// Returns the position of a rule that already keeps `rules[index]`, though over a shorter window.
///
/// `20 per 120s` beside `10 per 60s` is such a rule: harmless and sometimes clearer, so it is allowed.
#[must_use]
pub fn implied_by(rules: &[Rule], index: usize) -> Option<usize> {
    let rule = rules.get(index)?;
    rules.iter().position(|other| {
        other.role() == Role::Limit
            && rule.role() == Role::Limit
            && other.per() < rule.per()
            && !other.per().is_zero()
            && windows(rule.per(), other.per())
                .checked_mul(u128::from(other.count()))
                .is_some_and(|most| most <= u128::from(rule.count()))
    })
}

/// How many windows of length `short` it takes to cover one of length `long`.
fn windows(long: Duration, short: Duration) -> u128 {
    long.as_nanos().div_ceil(short.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sliding(count: u64, secs: u64) -> Rule {
        Rule::sliding_window(count, Duration::from_secs(secs))
    }

    fn errors(rules: &[Rule]) -> Vec<(Option<usize>, Field, String)> {
        let errors = validate(rules).expect_err("the rules are mistaken");
        errors.into_iter().map(|e| (e.rule(), e.field(), e.to_string())).collect()
    }

    #[test]
    fn the_customers_own_rules_are_sound() {
        let rules = [Rule::duplicate(DUPLICATE_PER), sliding(10, 60), sliding(20, 120)];
        assert_eq!(validate(&rules), Ok(()));
    }

    #[test]
    fn no_rule_at_all_is_a_mistake_of_the_policy() {
        let found = errors(&[]);
        assert_eq!((found[0].0, found.len()), (None, 1));
        assert!(found[0].2.contains("at least one rule"));
    }

    #[test]
    fn every_mistake_is_found_at_once_and_at_its_place() {
        let rules = [sliding(0, 60), sliding(1, 0), sliding(MAX_SLIDING_COUNT + 1, 60)];
        let places: Vec<_> = errors(&rules).into_iter().map(|(rule, field, _)| (rule, field)).collect();
        assert_eq!(places, [(Some(0), Field::Count), (Some(1), Field::Per), (Some(2), Field::Count)]);
    }

    #[test]
    fn a_window_has_whole_microseconds_and_an_end() {
        let odd = Rule::sliding_window(1, Duration::from_nanos(1_500));
        assert!(errors(&[odd])[0].2.contains("whole number of microseconds"));
        let endless = Rule::sliding_window(1, MAX_PER + Duration::from_secs(1));
        assert!(errors(&[endless])[0].2.contains("3660 days"));
        assert_eq!(validate(&[Rule::sliding_window(1, MAX_PER)]), Ok(()));
    }

    #[test]
    fn two_rules_of_one_window_are_refused_at_the_second() {
        let found = errors(&[sliding(10, 60), sliding(20, 60)]);
        assert_eq!((found.len(), found[0].0, found[0].1), (1, Some(1), Field::Per));
        assert!(found[0].2.contains("same window of 1m"));
    }

    #[test]
    fn a_rule_that_can_never_bind_names_the_one_that_is_stricter() {
        let found = errors(&[sliding(20, 60), sliding(10, 120)]);
        assert_eq!((found.len(), found[0].0), (1, Some(0)));
        assert!(found[0].2.contains("10 per 2m is at least as strict as 20 per 1m"));
    }

    #[test]
    fn a_rule_within_the_duplicate_window_can_never_bind() {
        let found = errors(&[Rule::duplicate(DUPLICATE_PER), sliding(1, 3)]);
        assert!(found[0].2.contains("`prevent_duplicate` (1 per 5s) is at least as strict"));
        assert!(found[0].2.ends_with("remove it, or that"));
    }

    #[test]
    fn prevent_duplicate_keeps_its_meaning_beside_a_stricter_rule() {
        assert_eq!(validate(&[Rule::duplicate(DUPLICATE_PER), sliding(1, 60)]), Ok(()));
    }

    #[test]
    fn an_implied_rule_is_allowed_and_known() {
        let rules = [sliding(10, 60), sliding(20, 120), sliding(19, 121)];
        assert_eq!(validate(&rules[..2]), Ok(()));
        assert_eq!(implied_by(&rules, 1), Some(0));
        assert_eq!(implied_by(&rules, 2), None);
    }

    use crate::DUPLICATE_PER;
}
