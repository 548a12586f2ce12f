//! Templates of keys and messages: text with placeholders, like `sms:{phone}`.

use syn::LitStr;
use tallygate_rules::{is_plain, is_printed};

use crate::diagnostic::{Mistakes, Place, nearest};
use crate::placeholder::Placeholder;

/// A template, in the order it is written.
pub(crate) struct Template {
    /// As it is written.
    pub(crate) text: String,
    pub(crate) parts: Vec<Part>,
    pub(crate) place: Place,
    purpose: Purpose,
}

/// What a template is for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Purpose {
    /// To tell whom the rules count.
    Key,
    /// To tell the caller of a rejection by a rule.
    Message,
    /// To tell the caller who is banned.
    BanMessage,
}

/// A part of a template.
pub(crate) enum Part {
    /// Text that stands for itself.
    Text(String),
    /// A value to put in.
    Value(Placeholder),
    /// Something about the rejection to put in.
    Told(Told),
}

/// What only a rejection knows: `{@retry_after}`.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Told {
    RetryAfter,
    Count,
    Per,
    Rule,
}

const TOLD: [(&str, Told); 4] =
    [("retry_after", Told::RetryAfter), ("count", Told::Count), ("per", Told::Per), ("rule", Told::Rule)];

/// What stands between two braces, or outside of them.
enum Piece<'a> {
    Text(String),
    Braced(&'a str),
}

impl Template {
    /// Reads a template, or reports every mistake in it.
    pub(crate) fn from_syn(literal: &LitStr, purpose: Purpose, mistakes: &mut Mistakes) -> Option<Self> {
        let place = Place::from(literal.span());
        let text = literal.value();
        let parts = read(&text, purpose);
        let parts = parts.map_err(|found| found.iter().for_each(|mistake| mistakes.report(place, mistake)));
        parts.ok().map(|parts| Self { text, parts, place, purpose })
    }

    /// Returns whether `{@name}` can stand in this template.
    pub(crate) fn can_tell(&self, name: &str) -> bool {
        told(name, self.purpose).is_ok()
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.parts.iter().filter_map(|part| match part {
            Part::Value(placeholder) => Some(placeholder),
            Part::Text(_) | Part::Told(_) => None,
        })
    }
}

/// Reads a template from its text.
fn read(template: &str, purpose: Purpose) -> Result<Vec<Part>, Vec<String>> {
    let (mut parts, mut mistakes) = (Vec::new(), Vec::new());
    for piece in scan(template).map_err(|mistake| vec![mistake])? {
        match piece {
            Piece::Text(text) => parts.push(Part::Text(text)),
            Piece::Braced(inner) => match braced(inner, purpose) {
                Ok(part) => parts.push(part),
                Err(mistake) => mistakes.push(mistake),
            },
        }
    }
    if mistakes.is_empty() { Ok(parts) } else { Err(mistakes) }
}

/// Takes a template apart, in which `{{` and `}}` are braces.
fn scan(template: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        let (brace, after) = from.split_at(1);
        text.push_str(before);
        if let Some(after) = after.strip_prefix(brace) {
            text.push_str(brace);
            rest = after;
            continue;
        }
        let closed = if brace == "{" { after.split_once('}') } else { None };
        let (inner, after) = closed.ok_or_else(|| unpaired(brace))?;
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Braced(inner));
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

fn unpaired(brace: &str) -> String {
    format!(
        "`{brace}` has no counterpart; write a placeholder like `{{phone}}`, or `{brace}{brace}` for the brace itself"
    )
}

fn braced(inner: &str, purpose: Purpose) -> Result<Part, String> {
    match inner.trim().strip_prefix('@') {
        Some(name) => told(name, purpose).map(Part::Told),
        None => Placeholder::parse(inner).map(Part::Value),
    }
}

fn told(text: &str, purpose: Purpose) -> Result<Told, String> {
    let name = text.split(':').next().unwrap_or_default().trim();
    let known = TOLD.iter().find(|(known, _)| *known == name);
    match (known, purpose) {
        (Some(_), Purpose::Key) => {
            Err(format!("`{{@{name}}}` is known when a call is rejected; a `message` can say it, but a `key` cannot"))
        }
        (Some(&(_, told)), Purpose::BanMessage) if told != Told::RetryAfter => Err(format!(
            "`{{@{name}}}` is told of a rule, which a ban is not; its `message` can say `{{@retry_after}}`"
        )),
        (Some(_), _) if name != text.trim() => Err(format!("`{{@{name}}}` takes no filter; write just `{{@{name}}}`")),
        (Some(&(_, told)), _) => Ok(told),
        (None, _) => Err(unknown_told(name, purpose)),
    }
}

fn unknown_told(name: &str, purpose: Purpose) -> String {
    let all = TOLD.map(|(known, _)| known);
    let known = match purpose {
        Purpose::Key => &[],
        Purpose::Message => &all[..],
        Purpose::BanMessage => &all[..1],
    };
    let meant = nearest(name, known.iter().copied());
    match (meant, purpose) {
        (Some(meant), _) => format!("unknown `{{@{name}}}`; did you mean `{{@{meant}}}`?"),
        (None, Purpose::Key) => format!(
            "`{{@{name}}}` comes from the request context, which this version does not have; name an argument, like \
             `{{address.ip()}}`"
        ),
        (None, _) => format!(
            "`{{@{name}}}` comes from the request context, which this version does not have; there are arguments, and \
             `{{@{}}}`",
            known.join("}`, `{@")
        ),
    }
}

/// Whether the text keeps two values apart that it stands between, as it holds a byte that is never part of a value.
///
/// Values hold plain bytes and escapes, text holds printed bytes and escapes. What is left for text alone is most of ASCII
/// punctuation, and the space.
pub(crate) fn keeps_apart(text: &str) -> bool {
    text.bytes().any(|byte| is_printed(byte) && !is_plain(byte))
}

/// Escapes text as it stands within a subject.
pub(crate) fn escape(text: &str) -> String {
    let escape = |byte| if is_printed(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests;
