//! The text form of overrides, for people and for Redis.
//!
//! ```text
//! 100 per 1h, 1000 per 1d                     replace all rules of the subject in their units
//! daily = 500 per 1d, 0 = 10 per 1s           replace single ones, by name or position
//! 100 per 1h for 2h                           as people write how long it holds
//! shadow                                      put the policy in shadow: nothing is denied
//! 100 per 1h, enforced                        other rules, and enforce them where the program or a file says `shadow`
//! 100 per 1h until 1800007200                 as it is stored: in seconds since 1970, with up to six decimals
//! ```
//!
//! Rules are written as [`Rule`] writes them. A name is quoted unless it is no number and consists of letters, digits,
//! `_`, `-` and `.`.

mod selector;

use std::fmt::Write as _;
use std::time::Duration;

use tallygate_rules::{
    MAX_RULES, ParseRuleError, Replacement, Rule, RuleId, duration_meant, format_rules, parse_duration, rule_meant,
};

pub(super) use self::selector::selector;
use self::selector::{is_number, is_quote, read_selector, split_unquoted};
use super::checks;
use super::target::OverrideContent;
use crate::bounds::OVERRIDE_BYTES;

/// The words for whether the policy is in shadow.
const SHADOW: &str = "shadow";
const ENFORCED: &str = "enforced";

/// An override as people write it, entry by entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::limiter) struct WrittenOverride {
    /// Rules, each with the rule that it replaces; without one, they replace all rules of the subject in their units.
    pub(in crate::limiter) rules: Vec<(Option<RuleId>, Rule)>,
    pub(in crate::limiter) shadow: Option<bool>,
}

/// Reads a stored override: its content, and when it expires in microseconds since 1970.
pub(super) fn read(text: &str) -> Result<(OverrideContent, Option<u64>), String> {
    let (rules, end) = split_end(text, "until");
    let expires_us = end.map(read_time).transpose()?;
    let content = content(read_entries(rules)?)?;
    let mistakes = content.replacement.as_ref().map(checks::mistakes).unwrap_or_default();
    if mistakes.is_empty() { Ok((content, expires_us)) } else { Err(mistakes.join("; ")) }
}

/// Writes an override for the store; `None` if that is too long.
pub(super) fn write(content: &OverrideContent, expires_us: Option<u64>) -> Option<String> {
    let mut text = write_content(content);
    if let Some(us) = expires_us {
        let decimals = format!("{:06}", us % 1_000_000);
        // Writing to a string cannot fail.
        let _ = match decimals.trim_end_matches('0') {
            "" => write!(text, " until {}", us / 1_000_000),
            decimals => write!(text, " until {}.{decimals}", us / 1_000_000),
        };
    }
    (text.len() <= OVERRIDE_BYTES).then_some(text)
}

/// Writes an override without its expiry.
pub(super) fn write_content(content: &OverrideContent) -> String {
    let shadow = content.shadow.map(|is_shadow| if is_shadow { SHADOW } else { ENFORCED });
    let rules = content.replacement.as_ref().map(write_rules);
    rules.as_deref().into_iter().chain(shadow).collect::<Vec<_>>().join(", ")
}

fn write_rules(replacement: &Replacement) -> String {
    match replacement {
        Replacement::All(rules) => format_rules(rules),
        Replacement::Single(rules) => {
            let texts: Vec<_> = rules.iter().map(|(id, rule)| format!("{} = {rule}", selector(id))).collect();
            texts.join(", ")
        }
    }
}

/// Returns when a stored override expires, if that can be read.
pub(super) fn expires_us(text: &str) -> Option<u64> {
    split_end(text, "until").1.and_then(|time| read_time(time).ok())
}

/// Reads an override as people write it: its content, and how long it holds.
pub(in crate::limiter) fn read_written(text: &str) -> Result<(WrittenOverride, Option<Duration>), String> {
    read_strictly(text).map_err(|mistake| {
        let meant = meant(text).filter(|meant| read_strictly(meant).is_ok());
        let remedy = meant.map(|meant| format!("did you mean `{meant}`?"));
        // The mistake in a single rule already suggests what was meant.
        let better = remedy.filter(|remedy| !mistake.ends_with(remedy));
        better.map_or(mistake, |remedy| format!("it cannot be read; {remedy}"))
    })
}

fn read_strictly(text: &str) -> Result<(WrittenOverride, Option<Duration>), String> {
    let (rules, end) = split_end(text, "for");
    let holds =
        end.map(|text| parse_duration(text).map_err(|mistake| format!("the duration in `for {text}` {mistake}")));
    Ok((read_entries(rules)?, holds.transpose()?))
}

/// Finds out what the rules replace.
pub(in crate::limiter) fn content(written: WrittenOverride) -> Result<OverrideContent, String> {
    let WrittenOverride { rules, shadow } = written;
    let replaces_rules = !rules.is_empty() || shadow.is_none();
    let replacement = if replaces_rules { Some(replacement(rules)?) } else { None };
    Ok(OverrideContent { replacement, shadow })
}

fn replacement(rules: Vec<(Option<RuleId>, Rule)>) -> Result<Replacement, String> {
    let number = rules.len();
    if number > MAX_RULES {
        return Err(format!("it has {number} rules, and {MAX_RULES} are the most"));
    }
    let mut all = Vec::new();
    let mut single = Vec::new();
    for (id, rule) in rules {
        match id {
            None => all.push(rule),
            Some(id) => single.push((id, rule)),
        }
    }
    match (all.len(), single.len()) {
        (_, 0) => Ok(Replacement::All(all)),
        (0, _) => Ok(Replacement::Single(single)),
        _ => Err(format!(
            "of the {number} rules some say which rule they replace, and some do not; say it of each, like \
             `daily = 100 per 1d`, or of none, so that they replace all rules of the subject"
        )),
    }
}

/// Splits off an ending like `for 2h`.
fn split_end<'a>(text: &'a str, keyword: &str) -> (&'a str, Option<&'a str>) {
    let end = || {
        let (rest, last) = text.trim_end().rsplit_once(char::is_whitespace)?;
        let (rules, word) = rest.trim_end().rsplit_once(char::is_whitespace)?;
        // Within quotes, it is part of a name.
        (word == keyword && !last.contains(is_quote)).then_some((rules, last))
    };
    end().map_or((text, None), |(rules, end)| (rules, Some(end)))
}

/// Reads a time in seconds since 1970, with up to six decimals, as microseconds.
fn read_time(text: &str) -> Result<u64, String> {
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_time = is_number(seconds) && is_number(decimals) && decimals.len() <= 6;
    let us = || {
        let seconds_us = seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?;
        seconds_us.checked_add(format!("{decimals:0<6}").parse().ok()?)
    };
    let us = if is_time { us() } else { None };
    us.ok_or_else(|| format!("`until {text}` is no time; write the seconds since 1970, like `until 1800007200`"))
}

fn read_entries(text: &str) -> Result<WrittenOverride, String> {
    if text.len() > OVERRIDE_BYTES {
        return Err(format!("it has more than {OVERRIDE_BYTES} bytes"));
    }
    let mut written = WrittenOverride::default();
    for entry in split_unquoted(text, &[',', '·']) {
        let shadow = match entry.trim() {
            SHADOW => true,
            ENFORCED => false,
            _ => {
                written.rules.push(read_entry(entry)?);
                continue;
            }
        };
        if written.shadow.replace(shadow).is_some() {
            return Err(format!(
                "it says twice whether the policy is in shadow; write `{SHADOW}` or `{ENFORCED}` once"
            ));
        }
    }
    Ok(written)
}

fn read_entry(text: &str) -> Result<(Option<RuleId>, Rule), String> {
    let (id, rule) = match split_unquoted(text, &['='])[..] {
        [id, rule] => (Some(read_selector(id.trim())?), rule),
        _ => (None, text),
    };
    let rule = rule.parse().map_err(|mistake: ParseRuleError| mistake.to_string())?;
    Ok((id, rule))
}

/// Signs that people write instead of `=` between the name of a rule and its replacement.
const EQUALS: [&str; 5] = ["=>", ":=", "->", "==", ":"];

/// Returns the text of the override that was probably meant.
fn meant(text: &str) -> Option<String> {
    let (rules, holds) = match split_duration(text) {
        Some((rules, duration)) => (rules, format!(" for {duration}")),
        None => (text, String::new()),
    };
    let whole = rule_meant(rules).map(|rule| rule.to_string());
    let entries =
        || split_unquoted(rules, &[',', '·', ';', '|', '\n']).into_iter().map(entry_meant).collect::<Option<Vec<_>>>();
    let rules = whole.or_else(|| Some(entries()?.join(", ")))?;
    Some(format!("{rules}{holds}"))
}

/// Splits off an ending like `for 2 hours`.
fn split_duration(text: &str) -> Option<(&str, String)> {
    let (rules, duration) = text.rsplit_once(" for ")?;
    let duration = duration.trim();
    let read = parse_duration(duration).is_ok().then(|| duration.to_owned());
    Some((rules, read.or_else(|| duration_meant(duration))?))
}

fn entry_meant(text: &str) -> Option<String> {
    if matches!(text.trim(), SHADOW | ENFORCED) {
        return Some(text.trim().to_owned());
    }
    if let Some(rule) = rule_meant(text) {
        return Some(rule.to_string());
    }
    let separated = EQUALS.iter().find_map(|equals| text.split_once(equals)).or_else(|| text.split_once('='));
    let (id, rule) = separated?;
    Some(format!("{} = {}", selector(&read_selector(id.trim()).ok()?), rule_meant(rule)?))
}

#[cfg(test)]
mod tests {
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
}
