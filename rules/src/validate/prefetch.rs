//! The checks of policies whose calls are taken ahead.

use std::time::Duration;

use crate::algorithm::Role;
use crate::counted_subject::CountedSubject;
use crate::duration::format_duration;
use crate::error::{Field, RuleError};
use crate::limits::{MAX_PREFETCH, MIN_PREFETCH, MIN_PREFETCH_COUNT};
use crate::rule::Rule;
use crate::unit::CALLS;
use crate::validate::deciding;

/// Finds every reason why calls of these rules cannot be taken ahead for that time. `cost_of` is what each call costs in a
/// unit, or 1 if it is not known. [`CALLS`] names the unit of rules that count calls.
///
/// It is enough if one unit of one subject can be taken ahead.
///
/// # Errors
///
/// Returns all mistakes: first those in the time, then those of the rules in their order.
pub fn validate_prefetch(
    ahead: Duration,
    rules: &[(CountedSubject<'_>, Rule)],
    cost_of: impl Fn(&str) -> u64,
) -> Result<(), Vec<RuleError>> {
    // Rules in shadow always ask about each call, so they need no check.
    let rules = deciding(rules.iter().collect(), |(_, rule)| rule);
    let asked_at_once = |rule: &Rule| check_role(rule).or_else(|| check_count(rule));
    let is_taken = |(subject, counting): &&(CountedSubject<'_>, Rule)| {
        let mut own = rules.iter().filter(|(of, rule)| of == subject && rule.unit() == counting.unit());
        own.all(|(_, rule)| asked_at_once(rule).is_none())
    };
    let is_one_taken = rules.iter().any(is_taken);
    let in_rules = rules.iter().filter_map(|(_, rule)| {
        let reason = asked_at_once(rule).filter(|_| !is_one_taken);
        reason.or_else(|| check_per(ahead, rule)).or_else(|| check_bucket(ahead, rule, &cost_of))
    });
    let mistakes = check_range(ahead).into_iter().chain(in_rules);
    RuleError::all_or_none(mistakes.map(|mistake| RuleError::new(Field::Prefetch, mistake)).collect())
}

fn check_range(ahead: Duration) -> Option<String> {
    let [least, most] = [MIN_PREFETCH, MAX_PREFETCH].map(format_duration);
    let is_within = (MIN_PREFETCH..=MAX_PREFETCH).contains(&ahead);
    (!is_within).then(|| format!("`prefetch` is between {least} and {most}, like `prefetch = \"100ms\"`"))
}

/// These rules need to know each call at once, so no calls of their subject are taken ahead.
fn check_role(rule: &Rule) -> Option<String> {
    let kind = match rule.role() {
        Role::Duplicate => "prevent_duplicate",
        Role::Concurrency => "concurrency",
        Role::Limit => return None,
    };
    Some(format!(
        "`prefetch` takes no calls ahead of a subject with `{kind}`, for which each call has to be known at once; remove one"
    ))
}

fn check_per(ahead: Duration, rule: &Rule) -> Option<String> {
    let longest = rule.per().filter(|_| rule.role() == Role::Limit)? / 10;
    if ahead <= longest {
        return None;
    }
    let remedy = if longest < MIN_PREFETCH {
        "remove it".to_owned()
    } else {
        format!("write at most `prefetch = \"{}\"`", format_duration(Duration::from_millis(millis(longest))))
    };
    Some(format!("`prefetch` is at most a tenth of the shortest `per`, and too long for `{rule:#}`; {remedy}"))
}

fn check_count(rule: &Rule) -> Option<String> {
    let is_small = !rule.is_varying() && rule.count() < MIN_PREFETCH_COUNT;
    is_small.then(|| {
        format!(
            "`prefetch` needs a `count` of {MIN_PREFETCH_COUNT} or more, as fewer calls are not worth taking ahead from \
             `{rule:#}`; remove it"
        )
    })
}

fn check_bucket(ahead: Duration, rule: &Rule, cost_of: impl Fn(&str) -> u64) -> Option<String> {
    rule.bucket()?;
    // A call that costs nothing yet needs 1.
    let cost = cost_of(rule.unit().unwrap_or(CALLS)).max(1);
    if rule.is_varying() {
        return Some(
            "`prefetch` needs to know the `count` of a token bucket; write it as a number, use another algorithm, or remove \
             `prefetch`"
                .to_owned(),
        );
    }
    let left = rule.ahead(ahead).and_then(|ahead| ahead.capacity()).unwrap_or_default();
    (left < cost).then(|| {
        let ahead = format_duration(ahead);
        format!(
            "`prefetch` of {ahead} leaves {left} of the tokens of `{rule:#}`, which is less than a call takes; raise its \
             `capacity`, shorten `prefetch`, or remove it"
        )
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::TokenBucket;

    const SECOND: Duration = Duration::from_secs(1);
    const AHEAD: Duration = Duration::from_millis(100);

    fn mistakes(ahead: Duration, rules: &[Rule], cost: u64) -> Vec<String> {
        let rules: Vec<_> = rules.iter().map(|rule| (CountedSubject::labelled(None), rule.clone())).collect();
        let errors = validate_prefetch(ahead, &rules, |_| cost).err().into_iter().flatten();
        errors.inspect(|error| assert_eq!(error.field(), Field::Prefetch)).map(|error| error.to_string()).collect()
    }

    fn mistake(rule: Rule) -> String {
        mistakes(AHEAD, &[rule], 1).join("\n")
    }

    #[test]
    fn calls_of_every_algorithm_but_duplicates_and_concurrency_are_taken_ahead() {
        let rules = [
            Rule::sliding_window(100, SECOND),
            Rule::sliding_counter(100, SECOND),
            Rule::fixed_window(100, SECOND),
            Rule::token_bucket(100, SECOND),
            Rule::sliding_window(0, SECOND).varying(),
        ];
        assert_eq!(mistakes(AHEAD, &rules, 1), [""; 0]);
        assert!(mistake(Rule::duplicate(5 * SECOND)).contains("a subject with `prevent_duplicate`"));
        assert!(mistake(Rule::concurrency(200, 5 * SECOND)).contains("a subject with `concurrency`"));
    }

    #[test]
    fn the_time_is_bounded_by_itself_and_by_the_shortest_window() {
        let hourly = [Rule::sliding_window(1_000, 3_600 * SECOND)];
        for ahead in [Duration::ZERO, Duration::from_millis(9), 11 * SECOND] {
            let range = "`prefetch` is between 10ms and 10s, like `prefetch = \"100ms\"`";
            assert_eq!(mistakes(ahead, &hourly, 1), [range]);
        }
        let text = mistake(Rule::sliding_window(100, SECOND / 2));
        assert!(text.ends_with("too long for `100 per 500ms`; write at most `prefetch = \"50ms\"`"), "{text}");
        assert!(
            mistake(Rule::fixed_window(100, SECOND / 20)).ends_with("too long for `100 per fixed 50ms`; remove it")
        );
    }

    #[test]
    fn a_count_that_is_too_small_is_refused_unless_it_is_only_tried_out() {
        let small = Rule::sliding_window(99, SECOND);
        assert!(mistake(small.clone()).contains("a `count` of 100 or more"));
        assert!(mistake(small.clone().shadow()).contains("a `count` of 100 or more"), "a whole policy in shadow");
        assert_eq!(mistakes(AHEAD, &[Rule::sliding_window(100, SECOND), small.shadow()], 1), [""; 0]);
        let short = Rule::fixed_window(5, SECOND / 20).shadow();
        assert_eq!(mistakes(AHEAD, &[Rule::sliding_window(100, SECOND), short], 1), [""; 0]);
    }

    #[test]
    fn a_bucket_has_to_hold_a_call_beside_what_flows_in_meanwhile() {
        let bucket = |capacity| Rule::from_bucket(100, TokenBucket::new(SECOND).with_capacity(capacity));
        assert!(mistake(bucket(10)).contains("`prefetch` of 100ms leaves 0 of the tokens"));
        assert_eq!(mistakes(AHEAD, &[bucket(11)], 1), [""; 0]);
        assert!(mistakes(AHEAD, &[bucket(14)], 5)[0].contains("leaves 4 of the tokens"));
        assert!(mistake(Rule::token_bucket(0, SECOND).varying()).contains("write it as a number"));
    }

    #[test]
    fn a_bucket_of_a_unit_has_to_hold_what_a_call_costs_in_that_unit() {
        let bucket = Rule::from_bucket(60_000, TokenBucket::new(60 * SECOND).with_capacity(700)).counting("tokens");
        let rules = [Rule::sliding_window(600, 60 * SECOND), bucket];
        let rules = rules.map(|rule| (CountedSubject::labelled(None), rule));
        let text = |tokens, calls| {
            let cost_of = |unit: &str| if unit == "tokens" { tokens } else { calls };
            validate_prefetch(AHEAD, &rules, cost_of).err().map(|errors| errors[0].to_string())
        };
        assert_eq!((text(600, 650), text(0, 650)), (None, None));
        let refused = text(601, 1).unwrap();
        assert!(refused.contains("leaves 600 of the tokens of `60000 tokens per 1m burst 700`"), "{refused}");
    }

    #[test]
    fn of_several_subjects_one_has_to_be_taken_ahead_and_no_window_may_be_too_short() {
        let of = |subject, rule| (CountedSubject::labelled(subject), rule);
        let tenant = of(Some("tenant"), Rule::sliding_window(100_000, SECOND));
        let others = [
            of(None, Rule::sliding_window(10, SECOND)),
            of(None, Rule::duplicate(SECOND / 100)),
            of(Some("ip"), Rule::concurrency(5, SECOND)),
        ];
        let errors = validate_prefetch(AHEAD, &others, |_| 1).unwrap_err();
        let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert!(texts[0].contains("a `count` of 100 or more") && texts[1].contains("`prevent_duplicate`"), "{texts:?}");
        assert!(texts[2].contains("`concurrency`") && texts.len() == 3, "{texts:?}");
        let mut rules = others.to_vec();
        rules.push(tenant);
        assert!(validate_prefetch(AHEAD, &rules, |_| 1).is_ok());
        // A unit of a subject is taken ahead by itself.
        let tokens = of(Some("ip"), Rule::sliding_window(1_000, SECOND).counting("tokens"));
        assert!(validate_prefetch(AHEAD, &[&others[..], &[tokens]].concat(), |_| 1).is_ok());
        rules.push(of(Some("ip"), Rule::sliding_window(5, SECOND / 2)));
        let errors = validate_prefetch(AHEAD, &rules, |_| 1).unwrap_err();
        assert!(errors.len() == 1 && errors[0].to_string().contains("too long for `5 per 500ms`"), "{errors:?}");
    }
}
