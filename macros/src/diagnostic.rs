//! Errors in the attribute, each at its source text.

use std::fmt::Display;

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::LitStr;

/// The source text from one token to another.
///
/// Stable Rust cannot join two spans, but the compiler underlines everything between the first and the last token of an
/// error.
#[derive(Clone, Copy)]
pub(crate) struct SpanRange {
    pub(crate) first: Span,
    pub(crate) last: Span,
}

impl SpanRange {
    pub(crate) fn of_tokens(tokens: &impl ToTokens) -> Self {
        let mut trees = tokens.to_token_stream().into_iter();
        let first = trees.next().map_or_else(Span::call_site, |tree| tree.span());
        let last = trees.last().map_or(first, |tree| tree.span());
        Self { first, last }
    }

    pub(crate) fn call_site() -> Self {
        Self::from(Span::call_site())
    }

    pub(crate) fn join(self, end: impl Into<Self>) -> Self {
        Self { first: self.first, last: end.into().last }
    }
}

impl From<Span> for SpanRange {
    fn from(span: Span) -> Self {
        Self { first: span, last: span }
    }
}

impl ToTokens for SpanRange {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend([self.first, self.last].map(|span| Ident::new("span", span).into_token_stream()));
    }
}

#[derive(Clone)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) span: SpanRange,
}

impl From<&LitStr> for Spanned<String> {
    fn from(literal: &LitStr) -> Self {
        Self { value: literal.value(), span: literal.span().into() }
    }
}

/// The errors found so far: all of them are reported at once.
#[derive(Default)]
pub(crate) struct Diagnostics {
    errors: Option<syn::Error>,
    count: usize,
}

impl Diagnostics {
    pub(crate) fn report(&mut self, span: impl Into<SpanRange>, message: impl Display) {
        self.push(error(span, message));
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        let earlier = self.errors.take();
        self.errors = Some(combined(earlier, error));
        self.count += 1;
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns all errors and a last one, after which no check is possible.
    pub(crate) fn into_error_with(self, last: syn::Error) -> syn::Error {
        combined(self.errors, last)
    }

    pub(crate) fn ok_or_report<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn finish(self) -> syn::Result<()> {
        self.errors.map_or(Ok(()), Err)
    }
}

fn combined(earlier: Option<syn::Error>, last: syn::Error) -> syn::Error {
    match earlier {
        Some(mut earlier) => {
            earlier.combine(last);
            earlier
        }
        None => last,
    }
}

pub(crate) fn error(span: impl Into<SpanRange>, message: impl Display) -> syn::Error {
    syn::Error::new_spanned(span.into(), message)
}
