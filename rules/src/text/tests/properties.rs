//! What holds for every rule and every text.

use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::algorithm::Role;

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
    (algorithm, option::of(any::<u64>()), option::of(name())).prop_map(|(rule, count, name)| {
        let greatest = if rule.role() == Role::Duplicate { 1 } else { u64::MAX };
        let rule = count.map_or(rule.clone().varying(), |count| rule.with_count(count.min(greatest)));
        match name {
            Some(name) => rule.named(name),
            None => rule,
        }
    })
}

/// Words that texts of rules are made of, and some that they are not.
fn word() -> impl Strategy<Value = String> {
    let words = [
        "100",
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
