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

/// Returns the text if it is a name, without the `r#` of a raw identifier.
fn name(text: &str) -> Option<String> {
    let wordy = text.trim_start_matches("r#").chars().all(|c| c == '_' || c.is_alphanumeric());
    let name = wordy.then(|| Ident::parse_any.parse_str(text).ok()).flatten()?.unraw().to_string();
    (name != "_").then_some(name)
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
    let escape = |byte| if is_printed(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

/// Whether a byte of text stands for itself: `%` is left to escapes, and `!` to digests.
fn is_printed(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'%' | b'!')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows the parts of a template, placeholders in brackets.
    fn parts(template: &str) -> Result<Vec<String>, String> {
        let show = |part| match part {
            Part::Text(text) => text,
            Part::Value(Placeholder { root, members, .. }) => format!("[{root}{}]", ".".repeat(members.len())),
        };
        Ok(scan(template)?.into_iter().map(show).collect())
    }

    #[test]
    fn text_and_placeholders_come_in_their_order() {
        assert_eq!(parts("sms:{phone}").unwrap(), ["sms:", "[phone]"]);
        assert_eq!(parts("{a}:{b.c.0}/{ d.e() }").unwrap(), ["[a]", ":", "[b..]", "/", "[d.]"]);
        assert_eq!(parts("").unwrap(), [""; 0]);
    }

    #[test]
    fn doubled_braces_are_braces() {
        assert_eq!(parts("{{a}}").unwrap(), ["{a}"]);
        assert_eq!(parts("{{{a}}}").unwrap(), ["{", "[a]", "}"]);
        assert_eq!(parts("}}{{").unwrap(), ["}{"]);
    }

    #[test]
    fn single_braces_are_refused() {
        for mistaken in ["{", "}", "a{b", "a}b", "{a}}", "{{a}", "{a{b}}"] {
            assert!(parts(mistaken).is_err(), "{mistaken}");
        }
    }

    #[test]
    fn only_arguments_fields_and_methods_are_placeholders() {
        for mistaken in [
            "",
            " ",
            ".",
            "a.",
            ".a",
            "a..b",
            "1",
            "a b",
            "a+b",
            "a()",
            "a.b(c)",
            "a[0]",
            "a::b",
            "_",
            "a._",
            "a.self",
            "a.super()",
            "a.+1",
            "a.1b",
            "a.()",
            "&a",
            "*a",
            "a:?",
        ] {
            assert!(parts(&format!("{{{mistaken}}}")).is_err(), "{mistaken}");
        }
    }

    #[test]
    fn an_identifier_may_be_raw_or_of_any_script() {
        assert_eq!(parts("{r#type}{type}{größe}{self}").unwrap(), ["[type]", "[type]", "[größe]", "[self]"]);
    }

    #[test]
    fn text_is_escaped_so_that_it_is_never_taken_for_an_escape_or_a_digest() {
        assert_eq!(escape("a:/ {b}"), "a:/ {b}");
        assert_eq!(escape("%!é\n\u{7f}"), "%25%21%C3%A9%0A%7F");
    }

    #[test]
    fn only_what_no_value_contains_keeps_values_apart() {
        for text in [":", "/", "-:", " ", "{", "a=b", "é:"] {
            assert!(keeps_apart(text), "{text}");
        }
        for text in ["", "a", "0", ".", "_", "@", "+", "~", "-", "%", "!", "é", "\n"] {
            assert!(!keeps_apart(text), "{text}");
        }
    }
}
