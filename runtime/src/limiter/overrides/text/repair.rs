//! What a mistaken override was probably meant to be.

use tallygate_rules::{duration_meant, parse_duration, rule_meant};

use super::selector::{read_selector, selector, split_unquoted};

/// Signs that some write between a rule's name and what replaces it.
const EQUALS: [&str; 5] = ["=>", ":=", "->", "==", ":"];

/// Returns the text of the override that was probably meant.
pub(super) fn meant(text: &str) -> Option<String> {
    let (rules, holds) = match split_duration(text) {
        Some((rules, duration)) => (rules, format!(" for {duration}")),
        None => (text, String::new()),
    };
    let whole = rule_meant(rules).map(|rule| rule.to_string());
    let entries =
        || split_unquoted(rules, &[',', '·', ';', '|', '\n']).into_iter().map(entry).collect::<Option<Vec<_>>>();
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

fn entry(text: &str) -> Option<String> {
    if let Some(rule) = rule_meant(text) {
        return Some(rule.to_string());
    }
    let separated = EQUALS.iter().find_map(|equals| text.split_once(equals)).or_else(|| text.split_once('='));
    let (id, rule) = separated?;
    Some(format!("{} = {}", selector(&read_selector(id.trim()).ok()?), rule_meant(rule)?))
}
