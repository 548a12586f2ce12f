//! The checks of a policy's settings: its deadline, its `warn_at` and its longest pause.

use std::time::Duration;

use crate::algorithm::Role;
use crate::error::{Field, RuleError};
use crate::limits::{MAX_DEADLINE, MAX_PER};
use crate::rule::Rule;
use crate::validate::deciding;

/// Checks a deadline: the longest time that a decision takes.
///
/// # Errors
///
/// Returns an error if it is zero or longer than [`MAX_DEADLINE`].
pub fn validate_deadline(deadline: Duration) -> Result<(), RuleError> {
    let mistake = match deadline {
        Duration::ZERO => "must be longer than zero",
        deadline if deadline > MAX_DEADLINE => "is at most an hour",
        _ => return Ok(()),
    };
    Err(RuleError::new(Field::Deadline, format!("`deadline` {mistake}, like `deadline = \"50ms\"`")))
}

/// Checks the longest pause of a subject, with the rules that are known, and whether each counts that subject.
///
/// # Errors
///
/// Returns an error if it is zero or longer than [`MAX_PER`], if none of the rules that decide counts the subject that is
/// paused, or if calls are taken ahead.
pub fn validate_longest_pause<'a>(
    longest: Duration,
    rules: impl IntoIterator<Item = (bool, &'a Rule)>,
    is_prefetched: bool,
) -> Result<(), RuleError> {
    let rules = deciding(rules.into_iter().collect(), |(_, rule)| rule);
    let (field, mistake) = if longest.is_zero() {
        (Field::LongestPause, "`longest_pause` must be longer than zero, like `longest_pause = \"1h\"`")
    } else if longest > MAX_PER {
        (Field::LongestPause, "`longest_pause` is at most 3660 days, like `longest_pause = \"1h\"`")
    } else if !rules.is_empty() && !rules.iter().any(|(is_of_paused, _)| *is_of_paused) {
        (Field::Subject, "no enforced rule counts the subject that is paused; add a rule on it")
    } else if is_prefetched {
        let mistake = "a subject cannot be paused beside `prefetch`: other processes would still make the calls that they \
                       have taken ahead; remove one of them";
        (Field::Prefetch, mistake)
    } else {
        return Ok(());
    };
    Err(RuleError::new(field, mistake))
}

/// Checks the share of a limit from which a subject is near it.
///
/// # Errors
///
/// Returns an error if the share is not between 0 and 1, or if no rule can have a subject near its limit: all rules are
/// against duplicates, or have a count of 1, which one call uses up.
pub fn validate_warn_at<'a>(share: f64, rules: impl IntoIterator<Item = &'a Rule>) -> Result<(), RuleError> {
    let rules = deciding(rules.into_iter().collect(), |rule| rule);
    let mistake = if !(share > 0.0 && share < 1.0) {
        "`warn_at` must be more than 0 and less than 1, like `warn_at = 0.8`"
    } else if !rules.is_empty() && !rules.into_iter().any(has_near) {
        "`warn_at` needs a rule with a `count` of 2 or more: one call uses up the others; add such a rule, or remove it"
    } else {
        return Ok(());
    };
    Err(RuleError::new(Field::WarnAt, mistake))
}

/// Whether a subject can be near the rule's limit before it has used it up.
fn has_near(rule: &Rule) -> bool {
    let is_used_up_at_once = !rule.is_varying() && rule.capacity().unwrap_or(rule.count()) < 2;
    rule.role() != Role::Duplicate && !is_used_up_at_once
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_longer_than_zero_and_at_most_an_hour() {
        let nanosecond = Duration::from_nanos(1);
        assert!(validate_deadline(nanosecond).is_ok() && validate_deadline(MAX_DEADLINE).is_ok());
        let error = validate_deadline(Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "`deadline` must be longer than zero, like `deadline = \"50ms\"`");
        assert_eq!((error.field(), error.position()), (Field::Deadline, None));
        let error = validate_deadline(MAX_DEADLINE + nanosecond).unwrap_err();
        assert_eq!(error.to_string(), "`deadline` is at most an hour, like `deadline = \"50ms\"`");
    }

    #[test]
    fn a_pause_is_longer_than_zero_on_a_subject_that_is_counted_and_of_which_nothing_is_taken_ahead() {
        let (rule, in_shadow) = (Rule::sliding_window(9, MINUTE), Rule::sliding_window(9, MINUTE).shadow());
        let (own, other) = ((true, &rule), (false, &rule));
        let (own_in_shadow, other_in_shadow) = ((true, &in_shadow), (false, &in_shadow));
        for rules in [&[][..], &[own], &[other, own], &[own, other_in_shadow], &[own_in_shadow, other_in_shadow]] {
            for longest in [MINUTE, MAX_PER] {
                assert!(validate_longest_pause(longest, rules.iter().copied(), false).is_ok(), "{rules:?}");
            }
        }
        let mistake = |longest, rules: &[(bool, &Rule)], is_prefetched| {
            let error = validate_longest_pause(longest, rules.iter().copied(), is_prefetched).unwrap_err();
            assert_eq!(error.position(), None);
            (error.field(), error.to_string())
        };
        let is_mistake = |(field, text): (Field, String), expected, part| field == expected && text.contains(part);
        let too_short = mistake(Duration::ZERO, &[own], false);
        assert!(is_mistake(too_short, Field::LongestPause, "must be longer than zero"));
        assert!(is_mistake(mistake(MAX_PER + MINUTE, &[own], false), Field::LongestPause, "at most 3660 days"));
        for rules in [&[other][..], &[own_in_shadow, other]] {
            assert!(is_mistake(mistake(MINUTE, rules, false), Field::Subject, "add a rule on it"));
        }
        assert!(is_mistake(mistake(MINUTE, &[own], true), Field::Prefetch, "beside `prefetch`"));
    }

    use std::time::Duration;

    const MINUTE: Duration = Duration::from_secs(60);

    fn mistake(share: f64, rules: &[Rule]) -> String {
        let error = validate_warn_at(share, rules).unwrap_err();
        assert_eq!((error.field(), error.position()), (Field::WarnAt, None));
        error.to_string()
    }

    #[test]
    fn a_share_is_between_0_and_1() {
        let rules = [Rule::sliding_window(10, MINUTE)];
        assert!(validate_warn_at(0.001, &rules).is_ok() && validate_warn_at(0.999, &rules).is_ok());
        for share in [0.0, 1.0, -0.5, 80.0, f64::NAN, f64::INFINITY] {
            let mistake = mistake(share, &rules);
            assert_eq!(mistake, "`warn_at` must be more than 0 and less than 1, like `warn_at = 0.8`");
        }
    }

    #[test]
    fn a_rule_that_one_call_uses_up_has_nothing_to_warn_of() {
        let (once, twice) = (Rule::sliding_window(1, MINUTE), Rule::sliding_window(2, 2 * MINUTE));
        let rules = [once.clone(), Rule::duplicate(MINUTE)];
        assert!(mistake(0.8, &rules).contains("needs a rule with a `count` of 2 or more"));
        assert!(validate_warn_at(0.8, &[once.clone(), twice.clone()]).is_ok());
        // A rule that is tried out warns nobody.
        assert!(mistake(0.8, &[once, twice.clone().shadow()]).contains("needs a rule with a `count` of 2 or more"));
        assert!(validate_warn_at(0.8, &[twice.shadow()]).is_ok());
        // Another check reports that there is no rule.
        assert!(validate_warn_at(0.8, &[]).is_ok());
    }
}
