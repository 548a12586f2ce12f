//! Placeholders of templates: arguments with their fields, methods and filters.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::Index;
use syn::ext::IdentExt as _;
use syn::parse::Parser as _;
use tallygate_rules::nearest;

use crate::diagnostic::SpanRange;

/// An argument, its fields and its methods: `{phone}`, `{user.id}`, `{addr.ip()}`; filtered: `{email:trim:lower}`.
pub(crate) struct Placeholder {
    /// The text between the braces.
    pub(crate) text: String,
    /// The argument's name.
    pub(crate) root: String,
    pub(crate) members: Vec<Member>,
    /// In the order in which they are applied.
    pub(crate) filters: Vec<Filter>,
}

/// A change to a value before it is put in.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Filter {
    Lower,
    Trim,
    Hash,
    Subnet,
}

const FILTERS: [(&str, Filter); 4] =
    [("lower", Filter::Lower), ("trim", Filter::Trim), ("hash", Filter::Hash), ("subnet", Filter::Subnet)];

pub(crate) enum Member {
    Field(String),
    Index(u32),
    Method(String),
}

impl Placeholder {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut filters = text.split(':').map(str::trim);
        let mut names = filters.next().unwrap_or_default().split('.').map(str::trim);
        let root = names.next().unwrap_or_default();
        if root == "_" {
            return Err(format!(
                "`{{{text}}}` is not a placeholder: `_` binds no name; name the argument, like `{{phone}}` for \
                 `phone: &str`"
            ));
        }
        let filters: Vec<_> = filters.collect();
        let members: Option<Vec<_>> = names.map(Member::parse).collect();
        let (root, members) = name(root).zip(members).ok_or_else(|| {
            format!(
                "`{{{text}}}` is not a placeholder; write an argument, its fields and methods, like `{{user.id()}}`"
            )
        })?;
        let filters = filters.into_iter().map(|name| filter(name, text)).collect::<Result<Vec<_>, _>>()?;
        check_filter_order(text, &filters)?;
        Ok(Self { text: text.to_owned(), root, members, filters })
    }

    /// Returns the expression, given the identifier of the argument.
    pub(crate) fn expression(&self, root: &Ident, span: SpanRange) -> TokenStream {
        // Resolved like the argument, because a macro may take function and template from two places.
        let mut root = root.clone();
        root.set_span(span.first.resolved_at(root.span()));
        let members = self.members.iter().map(|member| member.access(span.first));
        quote_spanned!(span.first=> #root #(#members)*)
    }
}

fn filter(name: &str, placeholder: &str) -> Result<Filter, String> {
    let known = FILTERS.map(|(known, _)| known);
    let found = FILTERS.iter().find(|(known, _)| *known == name).map(|&(_, filter)| filter);
    found.ok_or_else(|| {
        let remedy = match nearest(name, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the filters are `{}`", known.join("`, `")),
        };
        match name {
            "" => format!("`{{{placeholder}}}` has no filter after its `:`; {remedy}"),
            _ => format!("`{{{placeholder}}}` has the unknown filter `{name}`; {remedy}"),
        }
    })
}

impl Filter {
    fn name(self) -> &'static str {
        FILTERS.iter().find(|(_, filter)| *filter == self).map_or("", |(name, _)| name)
    }

    /// Returns when it is applied: the text is cleaned, then reduced to its network, then hashed.
    fn stage(self) -> u8 {
        match self {
            Self::Lower | Self::Trim => 0,
            Self::Subnet => 1,
            Self::Hash => 2,
        }
    }
}

/// Refuses a filter that is repeated, or that comes after the filter of a later stage.
fn check_filter_order(placeholder: &str, filters: &[Filter]) -> Result<(), String> {
    let mut ordered: Vec<Filter> = Vec::new();
    let mut mistake = None;
    for &filter in filters {
        let name = filter.name();
        if ordered.contains(&filter) {
            mistake.get_or_insert_with(|| format!("has the filter `{name}` twice"));
            continue;
        }
        if let Some(later) = ordered.iter().find(|earlier| earlier.stage() > filter.stage()) {
            mistake.get_or_insert_with(|| format!("applies `{name}` to the result of `{}`", later.name()));
        }
        ordered.push(filter);
    }
    let Some(mistake) = mistake else { return Ok(()) };
    ordered.sort_by_key(|filter| filter.stage());
    let value = placeholder.split(':').next().unwrap_or_default().trim();
    let names: Vec<_> = ordered.into_iter().map(Filter::name).collect();
    Err(format!("`{{{placeholder}}}` {mistake}; write `{{{value}:{}}}`", names.join(":")))
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
