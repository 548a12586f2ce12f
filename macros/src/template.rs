//! Templates of keys and messages: text with placeholders, like `sms:{phone}`.

mod placeholder;
#[cfg(test)]
mod tests;

use syn::LitStr;
use tallygate_rules::{is_plain, is_printed, nearest};

pub(crate) use self::placeholder::{Filter, Placeholder};
use crate::diagnostic::{Diagnostics, SpanRange};

/// A template.
pub(crate) struct Template {
    /// The whole template, as it is written.
    pub(crate) text: String,
    pub(crate) parts: Vec<Part>,
    pub(crate) span: SpanRange,
    purpose: Purpose,
}

/// What a template is for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Purpose {
    /// The subject of rules.
    Key,
    /// The message of a rejection by a rule.
    Message,
    /// The message of a rejection by a ban.
    BanMessage,
}

/// A part of a template.
pub(crate) enum Part {
    /// Fixed text, without escapes.
    Text(String),
    /// A value of the call.
    Value(Placeholder),
    /// A value of the rejection.
    Rejection(RejectionField),
}

/// A value that only a rejection has: `{@retry_after}`.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum RejectionField {
    RetryAfter,
    Count,
    Per,
    Rule,
}

const REJECTION_FIELDS: [(&str, RejectionField); 4] = [
    ("retry_after", RejectionField::RetryAfter),
    ("count", RejectionField::Count),
    ("per", RejectionField::Per),
    ("rule", RejectionField::Rule),
];

/// The text between two braces, or outside of them.
pub(crate) enum Piece<'a> {
    Text(String),
    Braced(&'a str),
}

impl Template {
    /// Reads a template, or reports every mistake in it.
    pub(crate) fn from_syn(literal: &LitStr, purpose: Purpose, diagnostics: &mut Diagnostics) -> Option<Self> {
        let span = SpanRange::from(literal.span());
        let text = literal.value();
        let parts = read(&text, purpose);
        let parts = parts.map_err(|found| found.iter().for_each(|mistake| diagnostics.report(span, mistake)));
        parts.ok().map(|parts| Self { text, parts, span, purpose })
    }

    /// Returns whether the template may contain `{@name}`.
    pub(crate) fn has_rejection_field(&self, name: &str) -> bool {
        self.purpose.rejection_fields().any(|(known, _)| known == name)
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.parts.iter().filter_map(|part| match part {
            Part::Value(placeholder) => Some(placeholder),
            Part::Text(_) | Part::Rejection(_) => None,
        })
    }
}

/// Reads a template from its text.
fn read(template: &str, purpose: Purpose) -> Result<Vec<Part>, Vec<String>> {
    let (mut parts, mut diagnostics) = (Vec::new(), Vec::new());
    for piece in scan(template).map_err(|mistake| vec![mistake])? {
        match piece {
            Piece::Text(text) => parts.push(Part::Text(text)),
            Piece::Braced(inner) => match braced(inner, purpose) {
                Ok(part) => parts.push(part),
                Err(mistake) => diagnostics.push(mistake),
            },
        }
    }
    if diagnostics.is_empty() { Ok(parts) } else { Err(diagnostics) }
}

/// Splits a template at its braces. `{{` and `}}` become braces of the text.
pub(crate) fn scan(template: &str) -> Result<Vec<Piece<'_>>, String> {
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
    format!("unmatched `{brace}`; write a placeholder like `{{phone}}`, or `{brace}{brace}` for the brace itself")
}

fn braced(inner: &str, purpose: Purpose) -> Result<Part, String> {
    match inner.trim().strip_prefix('@') {
        Some(field) => rejection_field(field, purpose).map(Part::Rejection),
        None => Placeholder::parse(inner).map(Part::Value),
    }
}

impl Purpose {
    /// Returns the fields of a rejection that a template of this purpose can show.
    fn rejection_fields(self) -> impl Iterator<Item = (&'static str, RejectionField)> {
        let is_shown = move |field| match self {
            Self::Key => false,
            Self::Message => true,
            Self::BanMessage => field == RejectionField::RetryAfter,
        };
        REJECTION_FIELDS.into_iter().filter(move |&(_, field)| is_shown(field))
    }
}

fn rejection_field(text: &str, purpose: Purpose) -> Result<RejectionField, String> {
    let name = text.split(':').next().unwrap_or_default().trim();
    match purpose.rejection_fields().find(|(known, _)| *known == name) {
        Some(_) if name != text.trim() => Err(format!("`{{@{name}}}` takes no filter; write just `{{@{name}}}`")),
        Some((_, field)) => Ok(field),
        None => Err(unknown_rejection_field(name, purpose)),
    }
}

fn unknown_rejection_field(name: &str, purpose: Purpose) -> String {
    let exists = REJECTION_FIELDS.iter().any(|(known, _)| *known == name);
    let known: Vec<_> = purpose.rejection_fields().map(|(known, _)| known).collect();
    match purpose {
        Purpose::Key if exists => {
            format!("`{{@{name}}}` is a value of a rejection; a `message` can show it, but a `key` cannot contain it")
        }
        Purpose::Key => {
            format!("unknown `{{@{name}}}`; a `key` consists of text and arguments, like `{{address.ip()}}`")
        }
        Purpose::BanMessage if exists => {
            format!("`{{@{name}}}` describes a rule; the `message` of a ban can show `{{@retry_after}}`, and arguments")
        }
        Purpose::Message | Purpose::BanMessage => match nearest(name, known.iter().copied()) {
            Some(meant) => format!("unknown `{{@{name}}}`; did you mean `{{@{meant}}}`?"),
            None => format!(
                "unknown `{{@{name}}}`; a `message` can show `{{@{}}}`, and arguments, like `{{phone}}`",
                known.join("}`, `{@")
            ),
        },
    }
}

/// Returns whether the text separates the values on its two sides: whether it contains a byte that no value contains.
///
/// Values consist of plain bytes and escapes, text of printed bytes and escapes. Only text contains a space, or most of
/// the ASCII punctuation.
pub(crate) fn is_separator(text: &str) -> bool {
    text.bytes().any(|byte| is_printed(byte) && !is_plain(byte))
}

/// Escapes fixed text for a subject.
pub(crate) fn escape(text: &str) -> String {
    let escape = |byte| if is_printed(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}
