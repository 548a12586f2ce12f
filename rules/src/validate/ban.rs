//! The checks of a ban beside the rules of its policy.

use std::time::Duration;

use crate::ban::Ban;
use crate::duration::format_duration;
use crate::error::{Field, RuleError};
use crate::limits::MAX_DENIALS;
use crate::rule::Rule;
use crate::validate::deciding;
use crate::validate::single_rule::check_duration;

/// Finds every mistake in a ban of a policy with these rules.
///
/// A ban that is too short to matter is a mistake. A rule of `count` per `per` admits one call every `per / count` on
/// average. A shorter ban takes less than one call from the subject that it should keep out, and if the subject has
/// used up the count at once, the rule denies its calls for longer than the ban: `10 per 1m` admits a call every 6
/// seconds, so a ban must last at least 6 seconds. With several rules, on any subject, the shortest of these times
/// counts, because it is not known which rule denies. Beside a rule without a known rate, with a schedule, with a unit
/// or with a count that [each call gives](Rule::varying), a ban may have any length.
///
/// # Errors
///
/// Returns all mistakes; [`RuleError::field`] is the mistaken part of the ban.
pub fn validate_ban<'a>(ban: &Ban, rules: impl IntoIterator<Item = &'a Rule>) -> Result<(), Vec<RuleError>> {
    let duration = check_duration(Field::Duration, "duration", ban.duration());
    let mistakes = [
        check_denials(ban),
        check_duration(Field::Within, "within", ban.within()),
        duration.or_else(|| check_long_enough(ban, rules)),
    ];
    RuleError::all_or_none(mistakes.into_iter().flatten().collect())
}

fn check_denials(ban: &Ban) -> Option<RuleError> {
    let message = match ban.denials() {
        0 => "`denials` must be at least 1, like `denials = 20`".to_owned(),
        1..=MAX_DENIALS => return None,
        _ => format!("`denials` is at most {MAX_DENIALS}, as the time of each is stored"),
    };
    Some(RuleError::new(Field::Denials, message))
}

/// Checks that the ban lasts at least the shortest average time between two calls that a rule admits.
fn check_long_enough<'a>(ban: &Ban, rules: impl IntoIterator<Item = &'a Rule>) -> Option<RuleError> {
    let rules = deciding(rules.into_iter().collect(), |rule| rule);
    let rates: Option<Vec<_>> = rules.into_iter().map(|rule| Some((time_per_call(rule)?, rule))).collect();
    let (shortest, rule) = rates?.into_iter().min_by_key(|&(time, _)| time)?;
    (ban.duration() < shortest).then(|| {
        let message = format!(
            "`duration` is too short to matter: `{rule:#}` admits a call every {} anyway; write a longer one, like \
             `duration = \"{}\"`",
            format_duration(shortest),
            format_duration(long_enough(shortest)),
        );
        RuleError::new(Field::Duration, message)
    })
}

/// Returns the average time between two calls with a cost of 1, rounded down to a microsecond. What a call costs in
/// another unit is not known.
fn time_per_call(rule: &Rule) -> Option<Duration> {
    if rule.unit().is_some() {
        return None;
    }
    let us = rule.per()?.as_micros().checked_div(rule.count().into())?;
    Some(Duration::from_micros(u64::try_from(us).ok()?))
}

/// Returns a duration to suggest: the first round one that is ten times as long.
fn long_enough(shortest: Duration) -> Duration {
    let lengths = [1, 10, 60, 600, 3_600, 86_400].map(Duration::from_secs);
    lengths.into_iter().find(|length| *length >= shortest.saturating_mul(10)).unwrap_or(shortest.saturating_mul(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn fields(ban: Ban, rules: &[Rule]) -> Vec<Field> {
        let errors = validate_ban(&ban, rules).err().into_iter().flatten();
        errors.map(|error| error.field()).collect()
    }

    fn lasting(duration: Duration) -> Ban {
        Ban::new(20, MINUTE, duration)
    }

    #[test]
    fn every_part_of_a_ban_is_checked() {
        let rules = [Rule::sliding_window(10, MINUTE)];
        let mistaken = Ban::new(0, Duration::ZERO, Duration::from_nanos(1));
        assert_eq!(fields(mistaken, &rules), [Field::Denials, Field::Within, Field::Duration]);
        assert_eq!(fields(Ban::new(MAX_DENIALS + 1, MINUTE, MINUTE), &rules), [Field::Denials]);
        assert_eq!(fields(Ban::new(MAX_DENIALS, MINUTE, MINUTE), &rules), []);
    }

    #[test]
    fn a_ban_lasts_at_least_as_long_as_a_rule_needs_to_admit_a_call() {
        let six = Duration::from_secs(6);
        let microsecond = Duration::from_micros(1);
        for rule in [Rule::sliding_window(10, MINUTE), Rule::token_bucket(10, MINUTE), Rule::fixed_window(1, six)] {
            assert_eq!(fields(lasting(six), std::slice::from_ref(&rule)), [], "{rule}");
            assert_eq!(
                fields(lasting(six.saturating_sub(microsecond)), std::slice::from_ref(&rule)),
                [Field::Duration],
                "{rule}"
            );
        }
    }

    #[test]
    fn the_fastest_rule_decides_how_short_a_ban_may_be() {
        let rules = [Rule::sliding_window(10, MINUTE), Rule::duplicate(Duration::from_secs(5))];
        assert_eq!(fields(lasting(Duration::from_secs(5)), &rules), []);
        let errors = validate_ban(&lasting(Duration::from_secs(4)), &rules).unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            "`duration` is too short to matter: `prevent_duplicate per 5s` admits a call every 5s anyway; write a longer \
             one, like `duration = \"1m\"`"
        );
    }

    #[test]
    fn a_rule_in_shadow_leads_to_no_ban_and_makes_none_shorter() {
        let rules = [Rule::sliding_window(10, MINUTE), Rule::sliding_window(60, MINUTE).shadow()];
        assert_eq!(fields(lasting(Duration::from_secs(5)), &rules), [Field::Duration]);
        assert_eq!(fields(lasting(Duration::from_secs(6)), &rules), []);
    }

    #[test]
    fn beside_a_rule_without_a_known_rate_a_ban_may_be_short() {
        let short = lasting(Duration::from_millis(1));
        assert_eq!(fields(short, &[Rule::sliding_window(1, MINUTE), Rule::sliding_window(1, MINUTE).varying()]), []);
        assert_eq!(fields(short, &[]), []);
        let tokens = Rule::sliding_window(1, MINUTE).counting("tokens");
        assert_eq!(fields(short, &[Rule::sliding_window(1, MINUTE), tokens]), []);
        #[cfg(feature = "cron")]
        {
            let daily = Rule::cron(1, crate::cron::Schedule::parse("@daily", "UTC").unwrap());
            assert_eq!(fields(short, &[Rule::sliding_window(1, MINUTE), daily]), []);
        }
    }
}
