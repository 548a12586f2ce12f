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

use std::fmt::Write as _;
use std::time::Duration;

use tallygate_rules::{ParseRuleError, Rule, RuleId, format_rules, parse_duration};

use super::checks;
use crate::policy::Replacement;

/// The longest text of one override.
const MOST_BYTES: usize = 8 * 1024;

/// Rules, each with the rule that it replaces; without one, they replace all rules of the subject.
pub(super) type Entries = Vec<(Option<RuleId>, Rule)>;

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
#[cfg(feature = "redis")]
pub(super) fn expires_us(text: &str) -> Option<u64> {
    split_end(text, "until").1.and_then(|time| read_time(time).ok())
}

/// Reads an override as people write it: its rules, and how long it holds.
pub(super) fn read_written(text: &str) -> Result<(Entries, Option<Duration>), String> {
    let (rules, end) = split_end(text, "for");
    let holds =
        end.map(|text| parse_duration(text).map_err(|mistake| format!("the duration in `for {text}` {mistake}")));
    Ok((read_entries(rules)?, holds.transpose()?))
}

/// Says what the rules replace.
pub(super) fn replacement(entries: Entries) -> Result<Replacement, String> {
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

/// Writes which rule is meant.
pub(super) fn selector(id: &RuleId) -> String {
    match id {
        RuleId::Position(position) => position.to_string(),
        RuleId::Name(name) if is_bare(name) && !is_number(name) => name.clone(),
        RuleId::Name(name) => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Whether a name needs no quotes.
fn is_bare(name: &str) -> bool {
    let is_plain = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
    !name.is_empty() && name.chars().all(is_plain)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_quote(character: char) -> bool {
    matches!(character, '"' | '\'')
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

fn read_entries(text: &str) -> Result<Entries, String> {
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

fn read_selector(text: &str) -> Result<RuleId, String> {
    if let Ok(position) = text.parse() {
        return Ok(RuleId::Position(position));
    }
    let name = match text.chars().next() {
        Some(quote) if is_quote(quote) => unquote(text, quote),
        _ => is_bare(text).then(|| text.to_owned()),
    };
    name.map(RuleId::Name).ok_or_else(|| {
        format!("`{text}` names no rule; write its position, or its name, in quotes unless it is one word")
    })
}

fn unquote(text: &str, quote: char) -> Option<String> {
    let mut characters = text.strip_prefix(quote)?.strip_suffix(quote)?.chars();
    let mut name = String::new();
    while let Some(character) = characters.next() {
        name.push(match character {
            '\\' => characters.next()?,
            other if other == quote => return None,
            other => other,
        });
    }
    Some(name)
}

/// Splits a text at signs, but not within quotes.
fn split_unquoted<'a>(text: &'a str, signs: &[char]) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut open_quote = None;
    let mut is_escaped = false;
    for (at, character) in text.char_indices() {
        match open_quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(quote) if character == quote => open_quote = None,
            Some(_) => is_escaped = character == '\\',
            None if is_quote(character) => open_quote = Some(character),
            None if signs.contains(&character) => {
                parts.extend(text.get(start..at));
                start = at + character.len_utf8();
            }
            None => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

#[cfg(test)]
mod tests;
