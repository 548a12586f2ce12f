//! The text form of overrides, for people and for Redis.
//!
//! ```text
//! 100 per 1h, 1000 per 1d                     replace all rules of the subject
//! daily = 500 per 1d, 0 = 10 per 1s           replace single ones, by name or position
//! 100 per 1h for 2h                           as people write how long it holds
//! 100 per 1h until 1800007200                 as it is stored: in seconds since 1970, with up to six decimals
//! ```
//!
//! Rules are written as [`Rule`] writes them. A name stands in quotes unless it consists of letters, digits, `_`, `-` and
//! `.`, and is no number.

mod selector;

use std::fmt::Write as _;
use std::time::Duration;

use tallygate_rules::{
    ParseRuleError, Replacement, Rule, RuleId, duration_meant, format_rules, parse_duration, rule_meant,
};

pub(super) use self::selector::selector;
use self::selector::{is_number, is_quote, read_selector, split_unquoted};
use super::checks;

/// The longest text of one override.
const MOST_BYTES: usize = 8 * 1024;

/// Rules, each with the rule that it replaces; without one, they replace all rules of the subject.
pub(super) type ReplacingRules = Vec<(Option<RuleId>, Rule)>;

/// Reads an override as it is stored: its rules, and when it expires in microseconds since 1970.
pub(super) fn read(text: &str) -> Result<(Replacement, Option<u64>), String> {
    let (rules, end) = split_end(text, "until");
    let expires_us = end.map(read_time).transpose()?;
    let replacement = replacement(read_entries(rules)?)?;
    let mistakes = checks::mistakes(&replacement);
    if mistakes.is_empty() { Ok((replacement, expires_us)) } else { Err(mistakes.join("; ")) }
}

/// Writes an override as it is stored, or `None` if that is too long.
pub(super) fn write(replacement: &Replacement, expires_us: Option<u64>) -> Option<String> {
    let mut text = write_rules(replacement);
    if let Some(us) = expires_us {
        let decimals = format!("{:06}", us % 1_000_000);
        // Writing to a string cannot fail.
        let _ = match decimals.trim_end_matches('0') {
            "" => write!(text, " until {}", us / 1_000_000),
            decimals => write!(text, " until {}.{decimals}", us / 1_000_000),
        };
    }
    (text.len() <= MOST_BYTES).then_some(text)
}

/// Writes the rules alone.
pub(super) fn write_rules(replacement: &Replacement) -> String {
    match replacement {
        Replacement::All(rules) => format_rules(rules),
        Replacement::Single(rules) => {
            let texts: Vec<_> = rules.iter().map(|(id, rule)| format!("{} = {rule}", selector(id))).collect();
            texts.join(", ")
        }
    }
}

/// Returns when an override that is stored so expires, if it can be read.
pub(super) fn expires_us(text: &str) -> Option<u64> {
    split_end(text, "until").1.and_then(|time| read_time(time).ok())
}

/// Reads an override as people write it: its rules, and how long it holds.
pub(super) fn read_written(text: &str) -> Result<(ReplacingRules, Option<Duration>), String> {
    read_strictly(text).map_err(|mistake| {
        let meant = meant(text).filter(|meant| read_strictly(meant).is_ok());
        let remedy = meant.map(|meant| format!("did you mean `{meant}`?"));
        // The mistake in a single rule says what was meant and why.
        let better = remedy.filter(|remedy| !mistake.ends_with(remedy));
        better.map_or(mistake, |remedy| format!("it cannot be read; {remedy}"))
    })
}

fn read_strictly(text: &str) -> Result<(ReplacingRules, Option<Duration>), String> {
    let (rules, end) = split_end(text, "for");
    let holds =
        end.map(|text| parse_duration(text).map_err(|mistake| format!("the duration in `for {text}` {mistake}")));
    Ok((read_entries(rules)?, holds.transpose()?))
}

/// Says what the rules replace.
pub(super) fn replacement(entries: ReplacingRules) -> Result<Replacement, String> {
    let number = entries.len();
    let mut all = Vec::new();
    let mut single = Vec::new();
    for (id, rule) in entries {
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

/// Splits off an end like `for 2h`.
fn split_end<'a>(text: &'a str, keyword: &str) -> (&'a str, Option<&'a str>) {
    let end = || {
        let (rest, last) = text.trim_end().rsplit_once(char::is_whitespace)?;
        let (rules, word) = rest.trim_end().rsplit_once(char::is_whitespace)?;
        // Within quotes it is part of a name.
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

fn read_entries(text: &str) -> Result<ReplacingRules, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("it has more than {MOST_BYTES} bytes"));
    }
    split_unquoted(text, &[',', '·']).into_iter().map(read_entry).collect()
}

fn read_entry(text: &str) -> Result<(Option<RuleId>, Rule), String> {
    let (id, rule) = match split_unquoted(text, &['='])[..] {
        [id, rule] => (Some(read_selector(id.trim())?), rule),
        _ => (None, text),
    };
    let rule = rule.parse().map_err(|mistake: ParseRuleError| mistake.to_string())?;
    Ok((id, rule))
}

/// Signs that some write between a rule's name and what replaces it.
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

/// Splits off an end like `for 2 hours`.
fn split_duration(text: &str) -> Option<(&str, String)> {
    let (rules, duration) = text.rsplit_once(" for ")?;
    let duration = duration.trim();
    let read = parse_duration(duration).is_ok().then(|| duration.to_owned());
    Some((rules, read.or_else(|| duration_meant(duration))?))
}

fn entry_meant(text: &str) -> Option<String> {
    if let Some(rule) = rule_meant(text) {
        return Some(rule.to_string());
    }
    let separated = EQUALS.iter().find_map(|equals| text.split_once(equals)).or_else(|| text.split_once('='));
    let (id, rule) = separated?;
    Some(format!("{} = {}", selector(&read_selector(id.trim()).ok()?), rule_meant(rule)?))
}

#[cfg(test)]
mod tests;
