//! Templates of keys and messages: text with placeholders, like `sms:{phone}`.

mod placeholder;
#[cfg(test)]
mod tests;

use tallygate_rules::{Piece, TemplateUse, is_printed, nearest, scan};

pub(crate) use self::placeholder::TemplateValue;
use crate::diagnostic::{Diagnostics, SpanRange, Spanned};

pub(crate) struct SpannedTemplate {
    pub(crate) text: String,
    pub(crate) parts: Vec<TextPart>,
    pub(crate) span: SpanRange,
    purpose: TextPurpose,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum TextPurpose {
    Key,
    Message,
    BanMessage,
}

pub(crate) enum TextPart {
    /// Fixed text. Its doubled braces are single ones.
    Text(String),
    /// A value of the call: an argument, or a value of its context.
    Value(TemplateValue),
    Rejection(RejectionField),
}

/// A value that only a rejection has: `{@retry_after}`.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum RejectionField {
    RetryAfter,
    Count,
    Per,
    Rule,
    Unit,
}

const REJECTION_FIELDS: [(&str, RejectionField); 5] = [
    ("retry_after", RejectionField::RetryAfter),
    ("count", RejectionField::Count),
    ("per", RejectionField::Per),
    ("rule", RejectionField::Rule),
    ("unit", RejectionField::Unit),
];

impl SpannedTemplate {
    /// Reads a template, or reports every mistake in it.
    pub(crate) fn parse(text: Spanned<String>, purpose: TextPurpose, diagnostics: &mut Diagnostics) -> Option<Self> {
        let Spanned { value: text, span } = text;
        let parts = read(&text, purpose);
        let parts = parts.map_err(|found| found.iter().for_each(|mistake| diagnostics.report(span, mistake)));
        parts.ok().map(|parts| Self { text, parts, span, purpose })
    }

    pub(crate) fn template_use(&self) -> TemplateUse {
        match self.purpose {
            TextPurpose::Key => TemplateUse::Key,
            TextPurpose::Message | TextPurpose::BanMessage => TemplateUse::Message,
        }
    }

    pub(crate) fn has_rejection_field(&self, name: &str) -> bool {
        self.purpose.rejection_fields().any(|(known, _)| known == name)
    }

    /// Replaces `{*}` by a placeholder for each argument, with `:` between them.
    pub(crate) fn replace_all_placeholder(&mut self, names: &[String]) {
        let mut parts = Vec::new();
        for part in self.parts.drain(..) {
            match part {
                TextPart::Value(all) if all.is_all() => {
                    let values: Vec<_> = names.iter().map(|name| all.for_argument(name)).collect();
                    let texts: Vec<_> = values.iter().map(|value| format!("{{{}}}", value.text)).collect();
                    self.text = self.text.replacen(&format!("{{{}}}", all.text), &texts.join(":"), 1);
                    let separated = |value| [TextPart::Text(":".to_owned()), TextPart::Value(value)];
                    parts.extend(values.into_iter().flat_map(separated).skip(1));
                }
                part => parts.push(part),
            }
        }
        self.parts = parts;
    }

    /// Returns whether the template contains `{*}`.
    pub(crate) fn shows_all_arguments(&self) -> bool {
        self.placeholders().any(TemplateValue::is_all)
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &TemplateValue> {
        self.parts.iter().filter_map(|part| match part {
            TextPart::Value(placeholder) => Some(placeholder),
            TextPart::Text(_) | TextPart::Rejection(_) => None,
        })
    }
}

fn read(template: &str, purpose: TextPurpose) -> Result<Vec<TextPart>, Vec<String>> {
    let mut parts = Vec::new();
    let mut mistakes = Vec::new();
    for piece in scan(template).map_err(|mistake| vec![mistake])? {
        match piece {
            Piece::Text(text) => parts.push(TextPart::Text(text)),
            Piece::Braced(inner) => match braced(inner, purpose) {
                Ok(part) => parts.push(part),
                Err(mistake) => mistakes.push(mistake),
            },
        }
    }
    if mistakes.is_empty() { Ok(parts) } else { Err(mistakes) }
}

fn braced(inner: &str, purpose: TextPurpose) -> Result<TextPart, String> {
    let Some(name) = inner.trim().strip_prefix('@') else {
        let placeholder = TemplateValue::parse(inner)?;
        return if placeholder.is_all() && purpose != TextPurpose::Key {
            Err(format!("`{{{inner}}}` is for a `key`; a message names the arguments that it shows, like `{{phone}}`"))
        } else {
            Ok(TextPart::Value(placeholder))
        };
    };
    if inner.contains('|') {
        return alternatives(inner, purpose).map(TextPart::Value);
    }
    match rejection_field(name, purpose)? {
        Some(field) => Ok(TextPart::Rejection(field)),
        None => TemplateValue::parse_context(inner).map(TextPart::Value),
    }
}

/// Reads `@user|@ip`.
fn alternatives(inner: &str, purpose: TextPurpose) -> Result<TemplateValue, String> {
    if purpose != TextPurpose::Key {
        return Err(format!(
            "`{{{inner}}}`: alternatives are for a `key`; a message shows one value, like `{{@user}}`"
        ));
    }
    let value = TemplateValue::parse_context(inner)?;
    // A field of the rejection is no value of the context.
    value.alternatives.iter().try_for_each(|value| rejection_field(&value.root, purpose).map(drop))?;
    Ok(value)
}

impl TextPurpose {
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

/// Returns the field of a rejection with this name, or `None` for a value of the context.
fn rejection_field(text: &str, purpose: TextPurpose) -> Result<Option<RejectionField>, String> {
    let name = text.split(':').next().unwrap_or_default().trim();
    if let Some((_, field)) = purpose.rejection_fields().find(|(known, _)| *known == name) {
        let is_alone = name == text.trim();
        return is_alone
            .then_some(Some(field))
            .ok_or_else(|| format!("`{{@{name}}}` takes no filter; write just `{{@{name}}}`"));
    }
    if REJECTION_FIELDS.iter().any(|(known, _)| *known == name) {
        return Err(unsuitable_rejection_field(name, purpose));
    }
    match misspelt_rejection_field(name, purpose) {
        Some(meant) => Err(format!("unknown `{{@{name}}}`; did you mean `{{@{meant}}}`?")),
        None => Ok(None),
    }
}

fn unsuitable_rejection_field(name: &str, purpose: TextPurpose) -> String {
    if purpose == TextPurpose::Key {
        return format!(
            "`{{@{name}}}` is a value of a rejection; a `message` can show it, but a `key` cannot contain it"
        );
    }
    format!("`{{@{name}}}` describes a rule; the `message` of a ban can show `{{@retry_after}}`, and arguments")
}

/// Returns the field that was probably meant. A short name is more likely a value of the context: `role` does not mean
/// `rule`.
fn misspelt_rejection_field(name: &str, purpose: TextPurpose) -> Option<&'static str> {
    const SHORT: usize = 4;
    nearest(name, purpose.rejection_fields().map(|(known, _)| known)).filter(|_| name.len() > SHORT)
}

pub(crate) fn escape(text: &str) -> String {
    let escape = |byte| if is_printed(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}
