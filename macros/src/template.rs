//! Templates of keys and messages: text with placeholders, like `sms:{phone}`.

#[cfg(test)]
mod tests;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::Index;
use syn::ext::IdentExt as _;
use syn::parse::Parser as _;
use tallygate_rules::{
    Filter, FilteredValue, Piece, RejectionField, TemplateUse, alternatives_in_message, is_printed, scan,
};

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

/// An argument with its fields and methods (`{phone}`, `{user.id}`, `{addr.ip()}`) or a value of the context (`{@ip}`),
/// filtered: `{email:trim:lower}`.
pub(crate) struct TemplateValue {
    /// The text between the braces.
    pub(crate) text: String,
    /// The name of the argument, or of the value in the context.
    pub(crate) root: String,
    pub(crate) source: Source,
    pub(crate) members: Vec<PlaceholderPart>,
    pub(crate) filters: Vec<Filter>,
    /// Values of the context, of which the first one that exists is used: `{@user|@ip}`.
    pub(crate) alternatives: Vec<Self>,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Source {
    Argument,
    /// All arguments: `{*}`. A placeholder for each argument replaces it when the function is known.
    Arguments,
    Context,
}

const ALL: &str = "*";

pub(crate) enum PlaceholderPart {
    Field(String),
    Index(u32),
    Method(String),
}

impl TemplateValue {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let FilteredValue { name: value, filters, .. } = FilteredValue::parse(text)?;
        if value == ALL {
            return Ok(Self::new(text, value, Source::Arguments, filters));
        }
        let mut names = value.split('.').map(str::trim);
        let root = names.next().unwrap_or_default();
        if root == "_" {
            return Err(format!(
                "`{{{text}}}` is not a placeholder: `_` binds no name; name the argument, like `{{phone}}` for \
                 `phone: &str`"
            ));
        }
        let members: Option<Vec<_>> = names.map(PlaceholderPart::parse).collect();
        let (root, members) = name(root).zip(members).ok_or_else(|| {
            format!(
                "`{{{text}}}` is not a placeholder; write an argument, its fields and methods, like `{{user.id()}}`"
            )
        })?;
        Ok(Self { members, ..Self::new(text, root, Source::Argument, filters) })
    }

    fn new(text: &str, root: String, source: Source, filters: Vec<Filter>) -> Self {
        Self { text: text.to_owned(), root, source, members: Vec::new(), filters, alternatives: Vec::new() }
    }

    /// Reads a value of the context, like `@user:lower`.
    pub(crate) fn parse_context(text: &str) -> Result<Self, String> {
        let value = FilteredValue::parse(text)?;
        if value.has_alternatives() {
            let alternatives = value.alternatives().iter().map(|value| Self::parse_context(&value.text));
            let alternatives = alternatives.collect::<Result<_, _>>()?;
            let root = value.name.trim_start_matches('@').to_owned();
            return Ok(Self { alternatives, ..Self::new(text, root, Source::Context, Vec::new()) });
        }
        let unnamed = || format!("`{{{text}}}` is no value of the context; {}", value.context_remedy("{@ip}"));
        let root = value.context_name().map(str::to_owned).ok_or_else(unnamed)?;
        value.check_not_debug()?;
        Ok(Self::new(text, root, Source::Context, value.filters))
    }

    /// Returns whether it is an argument without members and filters.
    pub(crate) fn is_argument(&self) -> bool {
        self.source == Source::Argument && self.members.is_empty() && self.filters.is_empty()
    }

    pub(crate) fn is_all(&self) -> bool {
        self.source == Source::Arguments
    }

    /// Returns a placeholder for the argument of that name, with the filters of this one.
    pub(crate) fn for_argument(&self, name: &str) -> Self {
        let text = self.text.trim_start().replacen(ALL, name, 1);
        Self::new(&text, name.to_owned(), Source::Argument, self.filters.clone())
    }

    pub(crate) fn is_in_context(&self) -> bool {
        self.source == Source::Context
    }

    /// Returns whether it may show a digest, which needs the secret of the limiter.
    pub(crate) fn is_hashed(&self) -> bool {
        self.filters.contains(&Filter::Hash) || self.alternatives.iter().any(Self::is_hashed)
    }

    pub(crate) fn expression(&self, root: &Ident, span: SpanRange) -> TokenStream {
        // The name is resolved like the argument, because a macro may take the function and the template from two
        // places.
        let mut root = root.clone();
        root.set_span(span.first.resolved_at(root.span()));
        let members = self.members.iter().map(|member| member.access(span.first));
        quote_spanned!(span.first=> #root #(#members)*)
    }
}

impl PlaceholderPart {
    fn parse(text: &str) -> Option<Self> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(Self::Index).ok();
        }
        let (text, kind): (_, fn(String) -> Self) = match text.strip_suffix("()") {
            Some(method) => (method, Self::Method),
            None => (text, Self::Field),
        };
        name(text).filter(|name| !matches!(name.as_str(), "self" | "Self" | "super" | "crate")).map(kind)
    }

    fn access(&self, span: Span) -> TokenStream {
        let member = match self {
            Self::Index(index) => Index { index: *index, span }.into_token_stream(),
            Self::Field(name) | Self::Method(name) => identifier(name, span).into_token_stream(),
        };
        let call = matches!(self, Self::Method(_)).then(|| quote_spanned!(span=> ()));
        quote_spanned!(span=> .#member #call)
    }
}

/// Returns the text without the `r#` of a raw identifier, if it is a name.
fn name(text: &str) -> Option<String> {
    let wordy = text.trim_start_matches("r#").chars().all(|c| c == '_' || c.is_alphanumeric());
    let name = wordy.then(|| Ident::parse_any.parse_str(text).ok()).flatten()?.unraw().to_string();
    (name != "_").then_some(name)
}

/// The identifier is raw if the name is a keyword.
fn identifier(name: &str, span: Span) -> Ident {
    match syn::parse_str::<Ident>(name) {
        Ok(_) => Ident::new(name, span),
        Err(_) => format_ident!("r#{}", name, span = span),
    }
}
