//! Templates of keys: text with placeholders, like `sms:{phone}`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::ext::IdentExt as _;
use syn::parse::Parser as _;
use syn::{Index, LitStr};

use crate::diagnostic::{Place, error};

/// A template, in the order it is written.
pub(crate) struct Template {
    pub(crate) parts: Vec<Part>,
    pub(crate) place: Place,
}

/// A part of a template.
pub(crate) enum Part {
    /// Text that stands for itself.
    Text(String),
    /// A value to put in.
    Value(Placeholder),
}

/// An argument, its fields and its methods: `{phone}`, `{user.id}`, `{addr.ip()}`.
pub(crate) struct Placeholder {
    /// What stands between the braces.
    pub(crate) text: String,
    /// The argument's name.
    pub(crate) root: String,
    members: Vec<Member>,
}

enum Member {
    Field(String),
    Index(u32),
    Method(String),
}

impl Template {
    pub(crate) fn from_syn(literal: &LitStr) -> syn::Result<Self> {
        let place = Place::from(literal.span());
        let parts = scan(&literal.value()).map_err(|mistake| error(place, mistake))?;
        Ok(Self { parts, place })
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value(placeholder) => Some(placeholder),
        })
    }
}

/// Reads a template from its text, in which `{{` and `}}` are braces.
fn scan(template: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
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
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(Part::Value(Placeholder::parse(inner)?));
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

fn unpaired(brace: &str) -> String {
    format!(
        "`{brace}` has no counterpart; write a placeholder like `{{phone}}`, or `{brace}{brace}` for the brace itself"
    )
}

impl Placeholder {
    fn parse(text: &str) -> Result<Self, String> {
        let mut names = text.split('.').map(str::trim);
        let root = names.next().and_then(name);
        let members: Option<Vec<_>> = names.map(Member::parse).collect();
        root.zip(members).map(|(root, members)| Self { text: text.to_owned(), root, members }).ok_or_else(|| {
            format!("`{{{text}}}` is no placeholder; write an argument, its fields and methods, like `{{user.id()}}`")
        })
    }

    /// Returns the expression, given the identifier that its name stands for.
    pub(crate) fn expression(&self, root: &Ident, place: Place) -> TokenStream {
        // Resolved where the argument is, also when a macro puts function and template together.
        let mut root = root.clone();
        root.set_span(place.first.resolved_at(root.span()));
        let members = self.members.iter().map(|member| member.access(place.first));
        quote_spanned!(place.first=> #root #(#members)*)
    }
}

impl Member {
    fn parse(text: &str) -> Option<Self> {
        if let Some(method) = text.strip_suffix("()") {
            return name(method).map(Self::Method);
        }
        text.parse().map(Self::Index).ok().or_else(|| name(text).map(Self::Field))
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

/// Returns the text if it is a name, without the `r#` of a raw identifier.
fn name(text: &str) -> Option<String> {
    let text = text.strip_prefix("r#").unwrap_or(text);
    let wordy = text.chars().all(|c| c == '_' || c.is_alphanumeric());
    (wordy && Ident::parse_any.parse_str(text).is_ok()).then(|| text.to_owned())
}

/// Makes an identifier of a name, raw if it is a keyword.
fn identifier(name: &str, span: Span) -> Ident {
    match syn::parse_str::<Ident>(name) {
        Ok(_) => Ident::new(name, span),
        Err(_) => format_ident!("r#{}", name, span = span),
    }
}

/// Whether the text keeps two values apart that it stands between, as it holds a byte that is never part of a value.
///
/// Values are percent-encoded but for `A–Z a–z 0–9 . _ @ + ~ -`, and so is text but for printable ASCII without `%` and
/// `!`. What is left for text alone is all other ASCII punctuation, and the space.
pub(crate) fn keeps_apart(text: &str) -> bool {
    text.bytes().any(|byte| is_printed(byte) && !byte.is_ascii_alphanumeric() && !b"._@+~-".contains(&byte))
}

/// Escapes text as it stands within a subject.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if is_printed(byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// Whether a byte of text stands for itself: `%` is left to escapes, and `!` to digests.
fn is_printed(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'%' | b'!')
}
