//! The rules that are mistakes, and their messages.

mod binding;
mod simulation;

use std::time::Duration;

use super::*;
use crate::algorithm::TokenBucket;
use crate::error::Field;
use crate::limits::{MAX_CONCURRENCY, MAX_COUNTER_COUNT, MAX_EXACT, MAX_PER, MAX_SLIDING_COUNT};
use crate::rule::DUPLICATE_PER;

/// Validates rules for calls of any cost.
fn validate(rules: &[Rule]) -> Result<(), Vec<RuleError>> {
    super::validate(rules, Costs::Any)
}

fn validate_by_subject(rules: &[(&str, Rule)]) -> Result<(), Vec<RuleError>> {
    let rules: Vec<_> =
        rules.iter().map(|(label, rule)| (CountedSubject::labelled(Some(label)), rule.clone())).collect();
    super::validate_by_subject(&rules, Costs::Any)
}

fn sliding(count: u64, secs: u64) -> Rule {
    Rule::sliding_window(count, Duration::from_secs(secs))
}

fn errors(rules: &[Rule]) -> Vec<(Option<usize>, Field, String)> {
    let errors = validate(rules).expect_err("the rules are mistaken");
    errors.into_iter().map(|e| (e.position(), e.field(), e.to_string())).collect()
}

#[test]
fn a_minute_beside_two_minutes_and_prevent_duplicate_is_sound() {
    let rules = [Rule::duplicate(DUPLICATE_PER), sliding(10, 60), sliding(20, 120)];
    assert_eq!(validate(&rules), Ok(()));
}

#[test]
fn a_policy_without_rules_is_a_mistake_of_no_single_rule() {
    let found = errors(&[]);
    assert_eq!((found[0].0, found.len()), (None, 1));
    assert!(found[0].2.contains("at least one rule"));
}

#[test]
fn a_concurrency_limit_has_bounds_and_is_one_for_each_subject() {
    let concurrency = |limit, secs| Rule::concurrency(limit, Duration::from_secs(secs));
    assert_eq!(validate(&[concurrency(MAX_CONCURRENCY, 1), sliding(1, 60)]), Ok(()));
    assert_eq!(validate(&[concurrency(1, 3_600), Rule::duplicate(DUPLICATE_PER)]), Ok(()));
    for (rule, field, text) in [
        (concurrency(0, 30), Field::Count, "`limit` must be at least 1"),
        (concurrency(MAX_CONCURRENCY + 1, 30), Field::Count, "`limit` of `concurrency` is at most 100000"),
        (concurrency(1, 0), Field::Lease, "`lease` is at least a second"),
        (concurrency(1, 3_601), Field::Lease, "`lease` is at most an hour"),
    ] {
        let found = errors(&[rule]);
        assert_eq!((found[0].1, found.len()), (field, 1));
        assert!(found[0].2.starts_with(text), "{found:?}");
    }
    let twice = errors(&[concurrency(10, 30), concurrency(20, 60)]);
    assert!(twice[0].2.contains("two rules count the concurrent calls of one subject"), "{twice:?}");
    assert_eq!(validate_by_subject(&[("user", concurrency(10, 30)), ("network", concurrency(20, 30))]), Ok(()));
}

#[test]
fn a_policy_has_a_bounded_number_of_rules() {
    let rules: Vec<_> = (1..=65).map(|n| sliding(n, n)).collect();
    assert!(errors(&rules)[0].2.contains("at most 32 rules"));
    assert_eq!(validate(&rules[..32]), Ok(()));
}

#[test]
fn every_mistake_is_found_at_its_position() {
    let rules = [sliding(0, 60), sliding(1, 0), sliding(MAX_SLIDING_COUNT + 1, 60)];
    let places: Vec<_> = errors(&rules).into_iter().map(|(rule, field, _)| (rule, field)).collect();
    assert_eq!(places, [(Some(0), Field::Count), (Some(1), Field::Per), (Some(2), Field::Count)]);
}

#[test]
fn a_window_has_whole_microseconds_and_a_greatest_length() {
    let odd = Rule::sliding_window(1, Duration::from_nanos(1_500));
    assert!(errors(&[odd])[0].2.contains("whole number of microseconds"));
    let endless = Rule::sliding_window(1, MAX_PER + Duration::from_secs(1));
    assert!(errors(&[endless])[0].2.contains("3660 days"));
    assert_eq!(validate(&[Rule::sliding_window(1, MAX_PER)]), Ok(()));
}

#[test]
fn two_rules_with_the_same_window_are_a_mistake_in_the_second() {
    let found = errors(&[sliding(10, 60), sliding(20, 60)]);
    assert_eq!((found.len(), found[0].0, found[0].1), (1, Some(1), Field::Per));
    assert!(found[0].2.contains("same window of 1m"));
}

#[test]
fn rules_are_compared_by_subject_but_names_are_unique_in_the_policy() {
    let rules = [("phone", sliding(10, 60)), ("ip", sliding(10, 60)), ("ip", sliding(9, 60).named("a"))];
    let places = |rules: &[(&str, Rule)]| -> Vec<_> {
        let errors = validate_by_subject(rules).err().into_iter().flatten();
        errors.map(|error| (error.position(), error.field())).collect()
    };
    assert_eq!(places(&rules), [(Some(2), Field::Per)]);
    let named =
        [("phone", sliding(1, 1).named("a")), ("ip", sliding(1, 1).named("a")), ("ip", sliding(2, 2).named("a"))];
    assert_eq!(places(&named), [(Some(1), Field::Name), (Some(2), Field::Name)]);
    assert_eq!(places(&rules[..2]), []);
}

#[test]
fn a_count_of_zero_is_the_only_mistake_beside_sound_rules() {
    let found = errors(&[sliding(0, 120), sliding(10, 60), Rule::fixed_window(6, Duration::from_secs(60))]);
    assert_eq!((found.len(), found[0].0, found[0].1), (1, Some(0), Field::Count));
}

fn bucket(secs: u64) -> TokenBucket {
    TokenBucket::new(Duration::from_secs(secs))
}

#[test]
fn every_parameter_of_a_bucket_is_checked() {
    let mistaken = [bucket(1).with_capacity(0), bucket(1).with_initial(0), bucket(1).with_initial(6)];
    let fields = mistaken.map(|bucket| errors(&[Rule::from_bucket(5, bucket)])[0].1);
    assert_eq!(fields, [Field::Capacity, Field::Initial, Field::Initial]);
    let idle = Rule::from_bucket(5, bucket(1).with_reset_after(Duration::ZERO));
    assert!(errors(&[idle])[0].2.contains("`reset_after` must be longer than zero"));
    assert_eq!(validate(&[Rule::from_bucket(5, bucket(1).with_capacity(100).with_initial(3))]), Ok(()));
}

#[test]
fn a_bucket_beyond_the_exact_integers_is_a_mistake_with_a_remedy() {
    let million_a_day = errors(&[Rule::token_bucket(1_000_000, Duration::from_secs(86_400))]);
    assert!(million_a_day[0].2.contains("a smaller `count` and a shorter `per`"));
    assert_eq!(validate(&[Rule::token_bucket(1_000_000, Duration::from_secs(3_600))]), Ok(()));
}

#[test]
fn different_algorithms_may_count_the_same_window() {
    let minute = Duration::from_secs(60);
    let rules = [Rule::sliding_counter(10, minute), Rule::fixed_window(10, minute), Rule::token_bucket(10, minute)];
    assert_eq!(validate(&rules), Ok(()));
}

#[test]
fn only_rules_of_one_subject_are_compared() {
    let by = |subject, count, secs| (subject, sliding(count, secs));
    assert_eq!(validate_by_subject(&[by("phone", 10, 60), by("network", 10, 60), by("network", 5, 30)]), Ok(()));
    let mistaken = [by("phone", 10, 60), by("network", 0, 60), by("phone", 20, 60), by("network", 5, 90)];
    let places: Vec<_> = validate_by_subject(&mistaken).unwrap_err().iter().map(RuleError::position).collect();
    assert_eq!(places, [Some(1), Some(2)]);
    assert_eq!(validate_by_subject(&[]).unwrap_err()[0].position(), None);
}

#[test]
fn a_varying_count_is_not_compared() {
    let minute = Duration::from_secs(60);
    let rules = [sliding(20, 60), sliding(1, 120).varying(), sliding(1, 30).varying(), sliding(10, 10)];
    assert_eq!(validate(&rules), Ok(()));
    assert_eq!((0..4).find_map(|index| implied_by(&rules, index)), None);
    assert_eq!(validate(&[Rule::from_bucket(1, bucket(60).with_initial(5)).varying()]), Ok(()));
    assert_eq!(errors(&[sliding(1, 60), Rule::sliding_window(9, minute).varying()])[0].1, Field::Per);
    assert_eq!(
        errors(&[Rule::from_bucket(1, bucket(86_400).with_capacity(MAX_EXACT)).varying()])[0].1,
        Field::Capacity
    );
}

#[test]
fn only_rules_of_one_unit_are_compared() {
    let of = |unit: &'static str, count, secs| sliding(count, secs).counting(unit);
    let minutes = [sliding(10, 60), of("tokens", 10, 60), of("bytes", 10, 60), of("bytes", 20, 120)];
    assert_eq!(validate(&minutes), Ok(()));
    assert_eq!((0..4).find_map(|index| implied_by(&minutes, index)), Some(2));
    assert_eq!(validate(&[sliding(10, 120), of("tokens", 20, 60)]), Ok(()));
    let found = errors(&[sliding(10, 60), of("tokens", 10, 60), of("tokens", 20, 60), of("tokens", 10, 120)]);
    let text = "two rules count the same window of 1m of `tokens`; keep the stricter one";
    assert_eq!(found[1], (Some(2), Field::Per, text.to_owned()));
    let text = "this rule can never bind: `10 tokens per 2m` admits at most 10 per 1m; remove it, or raise the other's `count`";
    assert_eq!((found.len(), &found[0]), (2, &(Some(1), Field::Rule, text.to_owned())));
    // Calls are all known to cost 1, but no unit is.
    let beside_duplicates = [Rule::duplicate(DUPLICATE_PER), of("tokens", 20, 60)];
    assert_eq!(super::validate(&beside_duplicates, Costs::Always(1)), Ok(()));
}

#[test]
fn a_unit_has_a_name_and_stands_on_a_rule_that_weighs_calls() {
    let minute = Duration::from_secs(60);
    for (rule, text) in [
        (sliding(1, 60).counting("Tokens"), "`Tokens` is not the name of a unit; did you mean `tokens`?"),
        (
            Rule::duplicate(minute).counting("tokens"),
            "`prevent_duplicate` counts calls and not `tokens`; remove the unit",
        ),
        (
            Rule::concurrency(1, minute).counting("tokens"),
            "`concurrency` counts calls and not `tokens`; remove the unit",
        ),
    ] {
        assert_eq!(errors(std::slice::from_ref(&rule)), [(Some(0), Field::Unit, text.to_owned())]);
    }
}

#[test]
fn an_allowance_of_many_bytes_is_refused_with_two_remedies() {
    let day = Duration::from_secs(86_400);
    let bytes = Rule::sliding_window(10_000_000_000, day).counting("bytes");
    let found = errors(std::slice::from_ref(&bytes));
    let text = "`count` of this algorithm is at most 2147483648, as a log stores sums of costs in 32 bits; count a larger \
                unit, like kilobytes in place of bytes, or use the algorithm `fixed_window`";
    assert_eq!(found, [(Some(0), Field::Count, text.to_owned())]);
    assert_eq!(validate(&[Rule::sliding_window(10_000_000, day).counting("kilobytes")]), Ok(()));
    assert_eq!(validate(&[Rule::fixed_window(10_000_000_000, day).counting("bytes")]), Ok(()));
}

#[test]
fn every_count_up_to_the_greatest_of_a_bucket_is_sound() {
    for bucket in [bucket(60), bucket(86_400), bucket(1).with_capacity(100)] {
        let rule = Rule::from_bucket(1, bucket);
        let greatest = rule.greatest_count();
        assert_eq!(validate(&[rule.clone().with_count(greatest)]), Ok(()));
        assert!(errors(&[rule.with_count(greatest + 1)])[0].2.contains("too many to count exactly"));
    }
}

#[test]
fn two_rules_with_the_same_name_are_a_mistake() {
    let found = errors(&[sliding(10, 60).named("a"), sliding(20, 120).named("a"), sliding(30, 240).named("")]);
    assert_eq!(
        found.iter().map(|(rule, field, _)| (*rule, *field)).collect::<Vec<_>>(),
        [(Some(1), Field::Name), (Some(2), Field::Name)]
    );
    assert_eq!(validate(&[sliding(10, 60).named("a"), sliding(20, 120).named("b")]), Ok(()));
}

#[test]
fn a_bucket_without_a_count_has_one_error() {
    assert_eq!(errors(&[Rule::from_bucket(0, bucket(1).with_initial(3))]).len(), 1);
}

#[test]
fn each_algorithm_has_its_greatest_count() {
    let minute = Duration::from_secs(60);
    assert!(errors(&[Rule::sliding_counter(MAX_COUNTER_COUNT + 1, minute)])[0].2.contains("67108864"));
    assert!(errors(&[Rule::fixed_window(MAX_EXACT + 1, minute)])[0].2.contains("9007199254740991"));
    assert!(errors(&[Rule::sliding_window(MAX_SLIDING_COUNT + 1, minute)])[0].2.contains("2147483648"));
    let twice = errors(&[Rule::duplicate(minute).with_count(2)]);
    assert_eq!(twice[0].2, "`count` of `prevent_duplicate` is always 1; remove it, or write a `rule` for more");
    assert_eq!(validate(&[Rule::sliding_window(MAX_SLIDING_COUNT, MAX_PER)]), Ok(()));
    assert_eq!(validate(&[Rule::sliding_counter(MAX_COUNTER_COUNT, MAX_PER)]), Ok(()));
    assert_eq!(validate(&[Rule::fixed_window(MAX_EXACT, MAX_PER)]), Ok(()));
}

#[test]
fn a_bucket_that_is_unused_again_before_a_token_has_flowed_in_is_a_mistake() {
    let bucket = |count, idle| {
        let bucket = TokenBucket::new(Duration::from_secs(60)).with_capacity(100);
        Rule::from_bucket(count, bucket.with_reset_after(Duration::from_millis(idle)))
    };
    assert_eq!(validate(&[bucket(10, 6_000)]), Ok(()));
    assert_eq!(validate(&[bucket(7, 8_572)]), Ok(()));
    let text = "`10 per 1m` can never bind: the bucket is unused again after `reset_after`, before it has a token more; \
                write at least `reset_after = \"6s\"`, the time of one token, or remove it";
    assert_eq!(errors(&[bucket(10, 5_999)]), [(Some(0), Field::ResetAfter, text.to_owned())]);
    assert_eq!(errors(&[bucket(7, 8_571)]).len(), 1);
    assert_eq!(validate(&[bucket(1, 1).varying()]), Ok(()));
}

#[test]
fn a_rule_in_shadow_is_compared_with_those_that_are_enforced() {
    let minute = Duration::from_secs(60);
    let rule = |count, minutes: u32| Rule::sliding_window(count, minutes * minute);
    let check = |rules: &[Rule]| super::validate(rules, Costs::Recounted);
    // Stricter rules may be tried in shadow, for the enforced window and for another.
    assert_eq!(check(&[rule(10, 1), rule(5, 1).shadow(), rule(9, 2).shadow()]), Ok(()));
    assert_eq!(check(&[rule(5, 1).shadow(), rule(10, 1)]), Ok(()));
    for looser in [[rule(10, 1), rule(20, 1).shadow()], [rule(10, 1).shadow(), rule(10, 1)]] {
        let mistakes = check(&looser).unwrap_err();
        assert!(mistakes.len() == 1 && mistakes[0].to_string().starts_with("this rule can never bind"), "{mistakes:?}");
    }
    let twice = check(&[rule(10, 1), rule(5, 1).shadow(), rule(4, 1).shadow()]).unwrap_err();
    assert_eq!((twice.len(), twice[0].position()), (1, Some(2)));
    let running = check(&[rule(10, 1), Rule::concurrency(5, minute).shadow()]).unwrap_err();
    assert!(running[0].to_string().contains("is not in shadow by itself"), "{running:?}");
}
