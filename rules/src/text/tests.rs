//! The texts that are rules, and the errors of other texts.

mod mistakes;

use std::time::Duration;

use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::algorithm::{Role, TokenBucket};
use crate::rule::DUPLICATE_PER;
use crate::unit::check_unit;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// Asserts that the text is read as the rule, and that the rule is written as the text.
#[track_caller]
fn assert_text(text: &str, rule: &Rule) {
    assert_eq!(text.parse::<Rule>().as_ref(), Ok(rule));
    assert_eq!(rule.to_string(), text);
}

#[test]
fn every_algorithm_has_a_text() {
    assert_text("100 per 1h", &Rule::sliding_window(100, HOUR));
    assert_text("about 100000 per 1h", &Rule::sliding_counter(100_000, HOUR));
    assert_text("100 per fixed 1h", &Rule::fixed_window(100, HOUR));
    assert_text("5 per 1s bucket", &Rule::token_bucket(5, SECOND));
    assert_text("5 per 1s burst 100", &Rule::from_bucket(5, TokenBucket::new(SECOND).with_capacity(100)));
    assert_text("prevent_duplicate per 5s", &Rule::duplicate(DUPLICATE_PER));
}

#[test]
fn each_algorithm_is_read_from_its_text() {
    for rule in Rule::of_each_algorithm() {
        assert_text(&rule.to_string(), &rule);
    }
}

#[test]
fn each_algorithm_can_count_a_unit() {
    for rule in Rule::of_each_algorithm().filter(|rule| rule.role() == Role::Limit) {
        let rule = rule.counting("tokens");
        let text = rule.to_string();
        assert!(text.contains("5 tokens per "), "{text}");
        assert_text(&text, &rule);
    }
    assert_text("n tokens per 1h", &Rule::sliding_window(0, HOUR).counting("tokens").varying());
    let bucket = TokenBucket::new(SECOND).with_capacity(20_000);
    assert_text("500 tokens per 1s burst 20000", &Rule::from_bucket(500, bucket).counting("tokens"));
    assert_text("9 per 1h", &Rule::sliding_window(9, HOUR).counting("calls"));
}

#[test]
fn every_parameter_of_a_bucket_has_a_text() {
    let bucket = TokenBucket::new(SECOND);
    assert_text("5 per 1s bucket initial 3", &Rule::from_bucket(5, bucket.with_initial(3)));
    assert_text("5 per 1s bucket reset_after 1h", &Rule::from_bucket(5, bucket.with_reset_after(HOUR)));
    let all = bucket.with_capacity(100).with_initial(3).with_reset_after(HOUR);
    assert_text("5 per 1s burst 100 initial 3 reset_after 1h", &Rule::from_bucket(5, all));
}

#[cfg(feature = "cron")]
#[test]
fn a_schedule_has_a_text() {
    let schedule = |expression, zone| crate::cron::Schedule::parse(expression, zone).unwrap();
    let rule = Rule::cron(10, schedule("0 0 6,18 * * *", "Asia/Shanghai"));
    assert_text("10 per \"0 0 6,18 * * *\" Asia/Shanghai", &rule);
    assert_text("10 per \"0 0 6,18 * * *\" Asia/Shanghai as shifts", &rule.named("shifts"));
    let daily = Rule::cron(10, schedule("@daily", "UTC"));
    assert_text("10 per \"@daily\" UTC", &daily);
    for text in ["10 per @daily", "10 per '@daily'", "10 per @daily utc", "10 per \"0  0 0 * * *\" UTC"] {
        assert_eq!(text.parse::<Rule>(), Ok(daily.clone()), "{text}");
    }
    assert_eq!("10 per @daily as d".parse::<Rule>(), Ok(daily.named("d")));
}

#[cfg(not(feature = "cron"))]
#[test]
fn a_schedule_needs_the_feature() {
    let error = "10 per \"0 0 6 * * *\" Asia/Shanghai".parse::<Rule>().unwrap_err();
    assert!(error.to_string().contains("needs the feature `cron`"), "{error}");
}

#[test]
fn a_count_may_be_zero_or_given_by_each_call() {
    assert_text("0 per 1h", &Rule::sliding_window(0, HOUR));
    assert_text("n per 1h", &Rule::sliding_window(9, HOUR).varying());
    assert_text("about n per 1h", &Rule::sliding_counter(9, HOUR).varying());
    assert_text("n per 1s burst 5", &Rule::from_bucket(1, TokenBucket::new(SECOND).with_capacity(5)).varying());
    assert_text("prevent_duplicate 0 per 5s", &Rule::duplicate(DUPLICATE_PER).with_count(0));
    assert_text("prevent_duplicate n per 5s", &Rule::duplicate(DUPLICATE_PER).varying());
}

#[test]
fn a_name_is_quoted_where_it_is_needed() {
    let named = |name: &'static str| Rule::sliding_window(100, HOUR).named(name);
    assert_text("100 per 1h as daily", &named("daily"));
    assert_text("100 per 1h as 每天", &named("每天"));
    assert_text("100 per 1h as per-day_2.0", &named("per-day_2.0"));
    assert_text("100 per 1h as \"each day, or · so\"", &named("each day, or · so"));
    assert_text(r#"100 per 1h as "a \"quoted\" \\ name""#, &named(r#"a "quoted" \ name"#));
    assert_text("100 per 1h as \"\"", &named(""));
    assert_text("prevent_duplicate per 1h as again", &Rule::duplicate(HOUR).named("again"));
}

#[test]
fn the_alternate_form_leaves_the_name_out() {
    assert_eq!(format!("{:#}", Rule::sliding_window(100, HOUR).named("daily")), "100 per 1h");
}

#[test]
fn the_text_may_be_written_more_freely_than_it_is_shown() {
    let bucket = TokenBucket::new(SECOND).with_capacity(100).with_initial(3);
    let same = [
        ("  100\tper   1h\n", Rule::sliding_window(100, HOUR)),
        ("100 per 60m", Rule::sliding_window(100, HOUR)),
        ("5 per 1s as x initial 3 burst 100", Rule::from_bucket(5, bucket).named("x")),
        ("5 per 1s as 'x' bucket burst 100 initial 3", Rule::from_bucket(5, bucket).named("x")),
        ("prevent_duplicate", Rule::duplicate(DUPLICATE_PER)),
        ("1_000 per 1h", Rule::sliding_window(1_000, HOUR)),
        ("5 per 1s burst 1_00 initial 3 as x", Rule::from_bucket(5, bucket).named("x")),
        ("9 calls per 1h", Rule::sliding_window(9, HOUR)),
        ("9 calls concurrent lease 1h", Rule::concurrency(9, HOUR)),
        ("prevent_duplicate as x", Rule::duplicate(DUPLICATE_PER).named("x")),
    ];
    for (text, rule) in same {
        assert_eq!(text.parse::<Rule>(), Ok(rule), "{text}");
    }
}

#[test]
fn a_list_is_separated_by_commas_or_dots() {
    let rules = vec![Rule::sliding_window(1, SECOND), Rule::fixed_window(10, HOUR).named("a, b")];
    assert_eq!(format_rules(&rules), "1 per 1s, 10 per fixed 1h as \"a, b\"");
    for text in [&*format_rules(&rules), "1 per 1s,10 per fixed 1h as 'a, b'", "1 per 1s · 10 per fixed 1h as \"a, b\""]
    {
        assert_eq!(parse_rules(text).as_ref(), Ok(&rules), "{text}");
    }
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![any::<u64>(), (0_u64..100).prop_map(|s| s * 1_000_000)].prop_map(Duration::from_micros)
}

fn bucket() -> impl Strategy<Value = TokenBucket> {
    let parameters = (duration(), option::of(any::<u64>()), option::of(any::<u64>()), option::of(duration()));
    parameters.prop_map(|(per, capacity, initial, reset_after)| {
        let mut bucket = TokenBucket::new(per);
        if let Some(tokens) = capacity {
            bucket = bucket.with_capacity(tokens);
        }
        if let Some(tokens) = initial {
            bucket = bucket.with_initial(tokens);
        }
        if let Some(idle) = reset_after {
            bucket = bucket.with_reset_after(idle);
        }
        bucket
    })
}

#[cfg(feature = "cron")]
fn schedule() -> impl Strategy<Value = Rule> {
    let expressions =
        ["@daily", "0 0 6 * * *", "*/7 3/11 1-5,9 L-3,15W JAN-MAR,12 ?", "0 45 1 ? 4,10 SUN#1,FRIL", " @Midnight "];
    let zones = ["UTC", "Asia/Shanghai", "america/argentina/buenos_aires", "Etc/GMT+8", "GB"];
    let parse = |(expression, zone)| Rule::cron(0, crate::cron::Schedule::parse(expression, zone).unwrap());
    (prop::sample::select(expressions.to_vec()), prop::sample::select(zones.to_vec())).prop_map(parse)
}

#[cfg(not(feature = "cron"))]
fn schedule() -> impl Strategy<Value = Rule> {
    duration().prop_map(|per| Rule::sliding_window(0, per))
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        prop::collection::vec(prop::sample::select(&[',', '·', '"', '\'', '\\', ' ', '\n', 'a', 'n', '1'][..]), 0..6)
            .prop_map(String::from_iter),
        prop::sample::select(&["per", "as", "burst", "n", "daily"][..]).prop_map(str::to_owned),
    ]
}

fn rule() -> impl Strategy<Value = Rule> {
    let algorithm = prop_oneof![
        duration().prop_map(|per| Rule::sliding_window(0, per)),
        duration().prop_map(|per| Rule::sliding_counter(0, per)),
        duration().prop_map(|per| Rule::fixed_window(0, per)),
        duration().prop_map(Rule::duplicate),
        duration().prop_map(|lease| Rule::concurrency(0, lease)),
        bucket().prop_map(|bucket| Rule::from_bucket(0, bucket)),
        schedule(),
    ];
    let unit = option::of("[a-z][a-z0-9_]{5,8}".prop_filter("a word of the text", |unit| check_unit(unit).is_ok()));
    (algorithm, option::of(any::<u64>()), unit, option::of(name())).prop_map(|(rule, count, unit, name)| {
        let unit = unit.filter(|_| rule.role() == Role::Limit);
        let rule = unit.map_or(rule.clone(), |unit| rule.counting(unit));
        let greatest = if rule.role() == Role::Duplicate { 1 } else { u64::MAX };
        let rule = count.map_or(rule.clone().varying(), |count| rule.with_count(count.min(greatest)));
        match name {
            Some(name) => rule.named(name),
            None => rule,
        }
    })
}

/// Returns words of rules, and some others.
fn word() -> impl Strategy<Value = String> {
    let words = [
        "100",
        "20_000",
        "tokens",
        "calls",
        "tokens/min",
        "n",
        "per",
        "1h",
        "about",
        "fixed",
        "burst",
        "bucket",
        "initial",
        "reset_after",
        "as",
        "@daily",
        "UTC",
        ",",
        "\"0 0 6 * * *\"",
        "\"",
        "'x'",
        "prevent_duplicate",
        "100/1h",
        "hour",
        "1",
        "w",
        "every",
        "ß",
        "0",
    ];
    prop_oneof![4 => prop::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}

proptest! {
    #[test]
    fn a_rule_is_read_as_it_was_written(rule in rule()) {
        let text = rule.to_string();
        let read: Rule = text.parse()?;
        prop_assert_eq!(&read, &rule, "{}", &text);
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn a_list_of_rules_is_read_as_it_was_written(rules in prop::collection::vec(rule(), 1..5)) {
        prop_assert_eq!(parse_rules(&format_rules(&rules)), Ok(rules));
    }

    #[test]
    fn any_words_are_read_or_refused_with_a_suggestion_that_is_read(words in prop::collection::vec(word(), 0..9)) {
        match words.join(" ").parse::<Rule>() {
            Ok(rule) => prop_assert_eq!(rule.to_string().parse::<Rule>()?, rule),
            Err(error) => {
                let suggestion = error.suggestion().map(str::to_owned);
                let read: Option<Rule> = suggestion.as_deref().map(str::parse).transpose()?;
                prop_assert_eq!(read.map(|rule| rule.to_string()), suggestion);
            }
        }
    }
}
