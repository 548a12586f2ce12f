use super::*;

const HOUR: Duration = Duration::from_secs(3_600);

fn hourly(count: u64) -> Rule {
    Rule::sliding_window(count, HOUR)
}

fn rules_alone(replacement: &Replacement) -> OverrideContent {
    OverrideContent { replacement: Some(replacement.clone()), shadow: None }
}

fn stored(replacement: &Replacement, expires_us: Option<u64>) -> String {
    stored_content(&rules_alone(replacement), expires_us)
}

fn stored_content(content: &OverrideContent, expires_us: Option<u64>) -> String {
    let text = write(content, expires_us).unwrap();
    assert_eq!(read(&text).unwrap(), (content.clone(), expires_us), "{text}");
    text
}

fn single<const N: usize>(rules: [(RuleId, Rule); N]) -> Replacement {
    Replacement::Single(rules.into())
}

fn mistake(text: &str) -> String {
    read(text).unwrap_err()
}

#[test]
fn rules_are_stored_in_the_words_of_people() {
    let rules = vec![Rule::duplicate(HOUR), hourly(100).named("a, b = c"), Rule::fixed_window(0, 24 * HOUR)];
    let text = "prevent_duplicate per 1h, 100 per 1h as \"a, b = c\", 0 per fixed 1d";
    assert_eq!(stored(&Replacement::All(rules), None), text);
}

#[test]
fn single_rules_are_stored_with_the_rule_that_they_replace() {
    let named = |name: &str| (RuleId::from(name), hourly(1));
    assert_eq!(stored(&single([named("daily"), (2.into(), hourly(5))]), None), "daily = 1 per 1h, 2 = 5 per 1h");
    assert_eq!(stored(&single([named("2")]), None), "\"2\" = 1 per 1h");
    assert_eq!(stored(&single([named("per day")]), None), "\"per day\" = 1 per 1h");
    assert_eq!(stored(&single([named("每天")]), None), "每天 = 1 per 1h");
    stored(&single([named(r#"a "b" \, 'c' = for 2h"#)]), Some(7));
}

#[test]
fn whether_a_policy_is_in_shadow_is_stored_alone_or_behind_its_rules() {
    let content = |replacement, shadow| OverrideContent { replacement, shadow: Some(shadow) };
    assert_eq!(stored_content(&content(None, true), None), "shadow");
    assert_eq!(stored_content(&content(None, false), Some(7_000_000)), "enforced until 7");
    let all = Replacement::All(vec![hourly(9)]);
    assert_eq!(stored_content(&content(Some(all), true), None), "9 per 1h, shadow");
    let (written, expires_in) = read_written(" shadow , daily = 9 per 1h for 2h").unwrap();
    assert_eq!((written.rules.len(), written.shadow, expires_in), (1, Some(true), Some(2 * HOUR)));
    assert!(mistake("shadow, enforced").contains("write `shadow` or `enforced` once"));
}

#[test]
fn an_expiry_is_stored_in_seconds_to_the_microsecond() {
    let all = || Replacement::All(vec![hourly(1)]);
    assert_eq!(stored(&all(), Some(1_800_007_200_000_000)), "1 per 1h until 1800007200");
    assert_eq!(stored(&all(), Some(1_800_007_200_500_000)), "1 per 1h until 1800007200.5");
    assert_eq!(stored(&all(), Some(1_800_007_200_000_007)), "1 per 1h until 1800007200.000007");
    assert_eq!(read("1 per 1h  until  7.25\n").unwrap(), (rules_alone(&all()), Some(7_250_000)));
}

#[test]
fn the_expiry_of_any_text_is_found() {
    assert_eq!(expires_us("something else until 7"), Some(7_000_000));
    for text in ["1 per 1h", "1 per 1h until", "1 per 1h until soon", "1 per 1h for 2h", "until 7"] {
        assert_eq!(expires_us(text), None, "{text}");
    }
}

#[test]
fn people_say_how_long_an_override_holds() {
    let (written, expires_in) = read_written("100 per 1h · 5 per 1s burst 9 for 2h").unwrap();
    assert_eq!((written.rules.len(), expires_in), (2, Some(2 * HOUR)));
    let (written, expires_in) = read_written("'per day' = 100 per 1h").unwrap();
    assert_eq!((written.rules, expires_in), (vec![(Some("per day".into()), hourly(100))], None));
    let mistake = read_written("1 per 1h for long").unwrap_err();
    assert!(mistake.starts_with("the duration in `for long` does not start with a whole number"), "{mistake}");
    assert!(read_written("1 per 1h until 1800000000").is_err());
}

#[cfg(feature = "cron")]
#[test]
fn the_signs_within_a_schedule_separate_nothing() {
    let schedule = tallygate_rules::Schedule::parse("0 0 6,18 * * *", "Asia/Shanghai").unwrap();
    let text = stored(&single([("daily".into(), Rule::cron(10, schedule))]), Some(7_000_000));
    assert_eq!(text, "daily = 10 per \"0 0 6,18 * * *\" Asia/Shanghai until 7");
}

#[test]
fn all_rules_or_none_say_which_rule_they_replace() {
    assert!(mistake("daily = 1 per 1h, 5 per 1d").contains("say it of each"));
}

#[test]
fn there_are_no_more_rules_than_in_a_policy_whatever_is_said_beside_them() {
    let rules = |number| (0..number).map(|at| format!("{at} = 7 per 1h")).collect::<Vec<_>>().join(", ");
    for beside in ["", ", shadow", ", enforced"] {
        assert!(read(&format!("{}{beside}", rules(MAX_RULES))).is_ok());
        for rules in [rules(MAX_RULES + 1), vec!["7 per 1h"; MAX_RULES + 1].join(", ")] {
            assert_eq!(mistake(&format!("{rules}{beside}")), "it has 33 rules, and 32 are the most");
        }
    }
}

#[test]
fn any_other_text_is_refused_and_the_mistake_is_named() {
    assert!(mistake("").contains("a rule is missing"));
    assert!(mistake("1;w 100 3600000000").contains("1;w"));
    assert!(mistake("= 1 per 1h").contains("names no rule"));
    assert!(mistake("per day = 1 per 1h").contains("names no rule"));
    assert!(mistake("\"daily = 1 per 1h").contains("quote"));
    for time in ["soon", "99999999999999999999", "7.0000001", "7."] {
        assert!(mistake(&format!("1 per 1h until {time}")).contains("seconds since 1970"), "{time}");
    }
    assert!(mistake("1 per 0s").contains("`per` must be longer than zero"));
    assert!(mistake("daily = 1 per 0s").contains("`per` must be longer than zero"));
    assert!(mistake(&"1 per 1h, ".repeat(1_000)).contains("bytes"));
    let long = Replacement::All(vec![hourly(1).named("x".repeat(9_000))]);
    assert!(write(&rules_alone(&long), None).is_none());
}

#[test]
fn an_override_in_the_words_of_other_libraries_is_answered_with_ours() {
    for (text, meant) in [
        ("100/h", "100 per 1h"),
        ("10 requests/min for 2 hours", "10 per 1m for 2h"),
        ("10 per 1s; 100 per 1m", "10 per 1s, 100 per 1m"),
        ("daily: 500 per 1d", "daily = 500 per 1d"),
        ("daily => 500/day, 0: 10/s for 90m", "daily = 500 per 1d, 0 = 10 per 1s for 90m"),
        ("count = 10, per = 60s", "10 per 1m"),
        ("100 per 1h for 1 day", "100 per 1h for 1d"),
    ] {
        let mistake = read_written(text).unwrap_err();
        assert!(mistake.ends_with(&format!("; did you mean `{meant}`?")), "{mistake}");
    }
}
