//! The names of rules in an override, and the quotes around them.

use tallygate_rules::RuleId;

pub(in crate::limiter::overrides) fn selector(id: &RuleId) -> String {
    match id {
        RuleId::Position(position) => position.to_string(),
        RuleId::Name(name) if is_bare(name) && !is_number(name) => name.clone(),
        RuleId::Name(name) => format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

fn is_bare(name: &str) -> bool {
    let is_plain = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
    !name.is_empty() && name.chars().all(is_plain)
}

pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn is_quote(character: char) -> bool {
    matches!(character, '"' | '\'')
}

pub(super) fn read_selector(text: &str) -> Result<RuleId, String> {
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
pub(super) fn split_unquoted<'a>(text: &'a str, signs: &[char]) -> Vec<&'a str> {
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
