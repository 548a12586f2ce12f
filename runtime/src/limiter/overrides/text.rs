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

use std::fmt::Write as _;
use std::time::Duration;

use tallygate_rules::{
    MAX_RULES, ParseRuleError, Replacement, Rule, RuleId, duration_meant, format_rules, in_quotes, is_bare, is_quote,
    parse_duration, rule_meant,
};

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

/// Writes which rule is replaced.
pub(super) fn selector(id: &RuleId) -> String {
    match id {
        RuleId::Position(position) => position.to_string(),
        RuleId::Name(name) if is_bare(name) && !is_number(name) => name.clone(),
        RuleId::Name(name) => in_quotes(name),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
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

/// Splits a text at these signs, except within quotes.
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
