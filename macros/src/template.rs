//! Templates of keys and messages: text with placeholders, like `sms:{phone}`.

mod placeholder;
#[cfg(test)]
mod tests;

use tallygate_rules::{Piece, RejectionField, TemplateUse, alternatives_in_message, is_printed, scan};

pub(crate) use self::placeholder::TemplateValue;
use crate::diagnostic::{Diagnostics, SpanRange, Spanned};

pub(crate) struct SpannedTemplate {
    pub(crate) text: String,
    pub(crate) parts: Vec<TextPart>,
    pub(crate) span: SpanRange,
    pub(crate) template_use: TemplateUse,
}

pub(crate) enum TextPart {
    /// Fixed text. Its doubled braces are single ones.
    Text(String),
    /// A value of the call: an argument, or a value of its context.
    Value(TemplateValue),
    Rejection(RejectionField),
}

impl SpannedTemplate {
    /// Reads a template, or reports every mistake in it.
    pub(crate) fn parse(
        text: Spanned<String>,
        template_use: TemplateUse,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let Spanned { value: text, span } = text;
        let parts = read(&text, template_use);
        let parts = parts.map_err(|found| found.iter().for_each(|mistake| diagnostics.report(span, mistake)));
        parts.ok().map(|parts| Self { text, parts, span, template_use })
    }

    pub(crate) fn has_rejection_field(&self, name: &str) -> bool {
        self.template_use.rejection_fields().any(|(known, _)| known == name)
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

fn read(template: &str, template_use: TemplateUse) -> Result<Vec<TextPart>, Vec<String>> {
    let mut parts = Vec::new();
    let mut mistakes = Vec::new();
    for piece in scan(template).map_err(|mistake| vec![mistake])? {
        match piece {
            Piece::Text(text) => parts.push(TextPart::Text(text)),
            Piece::Braced(inner) => match braced(inner, template_use) {
                Ok(part) => parts.push(part),
                Err(mistake) => mistakes.push(mistake),
            },
        }
    }
    if mistakes.is_empty() { Ok(parts) } else { Err(mistakes) }
}

fn braced(inner: &str, template_use: TemplateUse) -> Result<TextPart, String> {
    let Some(name) = inner.trim().strip_prefix('@') else {
        let placeholder = TemplateValue::parse(inner)?;
        return if placeholder.is_all() && template_use != TemplateUse::Key {
            Err(format!("`{{{inner}}}` is for a `key`; a message names the arguments that it shows, like `{{phone}}`"))
        } else {
            Ok(TextPart::Value(placeholder))
        };
    };
    if inner.contains('|') {
        return alternatives(inner, template_use).map(TextPart::Value);
    }
    match template_use.rejection_field(name)? {
        Some(field) => Ok(TextPart::Rejection(field)),
        None => TemplateValue::parse_context(inner).map(TextPart::Value),
    }
}

/// Reads `@user|@ip`.
fn alternatives(inner: &str, template_use: TemplateUse) -> Result<TemplateValue, String> {
    if template_use != TemplateUse::Key {
        return Err(alternatives_in_message(inner));
    }
    let value = TemplateValue::parse_context(inner)?;
    // A field of the rejection is no value of the context.
    value.alternatives.iter().try_for_each(|value| template_use.rejection_field(&value.root).map(drop))?;
    Ok(value)
}

pub(crate) fn escape(text: &str) -> String {
    let escape = |byte| if is_printed(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}
