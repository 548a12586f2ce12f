//! The checks of rules that stand in for a policy's own while it is running.

use crate::validate::check_times;
use crate::{MAX_RULES, Rule, RuleError, validate};

/// Finds every mistake in rules that override those of a policy: the same ones as [`validate`], but that a count of 0 is
/// none. It closes the door: as long as it is in force, nothing is admitted.
///
/// # Errors
///
/// Returns all the mistakes, in the order of the rules.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tallygate_rules::{Rule, validate, validate_override};
///
/// let closed = [Rule::sliding_window(0, Duration::from_secs(60))];
/// assert!(validate_override(&closed).is_ok());
/// assert!(validate(&closed).is_err());
/// ```
pub fn validate_override(rules: &[Rule]) -> Result<(), Vec<RuleError>> {
    if rules.is_empty() || rules.len() > MAX_RULES {
        return validate(rules);
    }
    let (mut positions, mut open, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for (position, rule) in rules.iter().enumerate() {
        if rule.count() > 0 {
            positions.push(position);
            open.push(rule.clone());
        } else {
            // Of a rule that admits nothing only the times can be wrong.
            errors.extend(check_times(rule).map(|mistake| mistake.at(position)));
        }
    }
    if !open.is_empty() {
        let mistakes = validate(&open).err().into_iter().flatten();
        errors.extend(mistakes.map(|mistake| {
            let rule = mistake.rule.and_then(|index| positions.get(index).copied());
            RuleError { rule, ..mistake }
        }));
    }
    errors.sort_by_key(RuleError::rule);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Field, TokenBucket};

    const MINUTE: Duration = Duration::from_secs(60);

    fn places(rules: &[Rule]) -> Vec<(Option<usize>, Field)> {
        let errors = validate_override(rules).expect_err("the rules are mistaken");
        errors.into_iter().map(|error| (error.rule(), error.field())).collect()
    }

    #[test]
    fn a_count_of_zero_closes_the_door_whatever_is_beside_it() {
        let bucket = TokenBucket::new(0, MINUTE).initial(3).into_rule();
        for closed in [Rule::sliding_window(0, 60 * MINUTE), Rule::fixed_window(0, MINUTE), bucket] {
            assert_eq!(validate_override(std::slice::from_ref(&closed)), Ok(()));
            assert_eq!(validate_override(&[Rule::sliding_window(10, MINUTE), closed]), Ok(()));
        }
    }

    #[test]
    fn every_other_mistake_is_found_at_its_place_and_in_the_same_words() {
        let rules = [
            Rule::sliding_window(0, MINUTE),
            Rule::sliding_window(1, Duration::ZERO),
            Rule::sliding_window(0, Duration::ZERO),
            Rule::sliding_window(20, MINUTE),
            Rule::sliding_window(10, 2 * MINUTE),
        ];
        assert_eq!(places(&rules), [(Some(1), Field::Per), (Some(2), Field::Per), (Some(3), Field::Rule)]);
        let (one, other) = (validate_override(&rules[1..2]), validate(&rules[1..2]));
        assert_eq!(one, other);
    }

    #[test]
    fn a_rule_that_admits_nothing_has_times_like_any_other() {
        let reset_after = |time| TokenBucket::new(0, MINUTE).reset_after(time).into_rule();
        assert_eq!(places(&[reset_after(Duration::MAX)]), [(Some(0), Field::ResetAfter)]);
        assert_eq!(places(&[reset_after(Duration::ZERO)]), [(Some(0), Field::ResetAfter)]);
        assert_eq!(validate_override(&[reset_after(MINUTE)]), Ok(()));
    }

    #[test]
    fn there_is_at_least_one_rule_and_a_bounded_number() {
        assert_eq!(places(&[]), [(None, Field::Rule)]);
        let many: Vec<_> = (0..65).map(|n| Rule::sliding_window(0, (n + 1) * MINUTE)).collect();
        assert_eq!(places(&many)[0], (None, Field::Rule));
        assert_eq!(validate_override(&many[..64]), Ok(()));
    }
}
