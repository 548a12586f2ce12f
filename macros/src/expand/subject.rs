//! Subjects: the text of a key, and the values of its placeholders from arguments and from the context.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};
use tallygate_rules::{Filter, SubnetBits};

use crate::diagnostic::SpanRange;
use crate::expand::context::{Expansion, borrowed, hygienic, quote_hygienic};
use crate::template::{SpannedTemplate, TemplateValue, TextPart, escape};

/// Returns the text before each value of a key, and after the last one.
pub(super) fn texts(key: Option<&SpannedTemplate>) -> TokenStream {
    let mut texts = vec![String::new()];
    for part in key.iter().flat_map(|key| &key.parts) {
        match (part, texts.last_mut()) {
            (TextPart::Text(text), Some(last)) => last.push_str(&escape(text)),
            _ => texts.push(String::new()),
        }
    }
    let written = texts.iter().rposition(|text| !text.is_empty()).map_or(0, |last| last + 1);
    texts.truncate(written);
    quote_hygienic!(&[#(#texts),*])
}

/// Nests the values in pairs: `(first, (second, third))`.
pub(super) fn paired(values: impl Iterator<Item = TokenStream>) -> TokenStream {
    let paired = |others, value| quote_hygienic!((#value, #others));
    values.collect::<Vec<_>>().into_iter().rev().reduce(paired).unwrap_or_else(|| quote_hygienic!(()))
}

impl Expansion<'_> {
    /// Returns the values of a key: nothing, one value, or nested pairs.
    pub(super) fn values(self, key: Option<&SpannedTemplate>) -> TokenStream {
        let value = |(placeholder, span): (&TemplateValue, _)| {
            if placeholder.is_in_context() {
                self.in_context(placeholder, span, &self.limiter())
            } else if placeholder.is_argument() && self.function.is_number(&placeholder.root) {
                // By value, so that the library knows its type.
                self.argument(placeholder, span)
            } else {
                self.value(placeholder, span)
            }
        };
        let placeholders =
            key.into_iter().flat_map(|key| key.placeholders().map(|placeholder| (placeholder, key.span)));
        paired(placeholders.map(value))
    }

    /// Borrows a value and filters it. An error about its type is reported at its template.
    pub(super) fn value(self, placeholder: &TemplateValue, span: SpanRange) -> TokenStream {
        let value = self.argument(placeholder, span);
        if placeholder.is_argument() && self.function.is_text(&placeholder.root) {
            // A `&str` needs no formatting, so it is not borrowed a second time.
            return quote_spanned!(hygienic(span.last)=> &*#value);
        }
        placeholder.filters.iter().fold(borrowed(&value, span), |value, filter| {
            let filtered = self.filtered(*filter, &value, span, &self.limiter());
            quote_spanned!(hygienic(span.last)=> &#filtered)
        })
    }

    fn argument(self, placeholder: &TemplateValue, span: SpanRange) -> TokenStream {
        let root = self.function.binding(&placeholder.root);
        root.map(|root| placeholder.expression(&root, span)).into_token_stream()
    }

    pub(super) fn filtered(
        self,
        filter: Filter,
        value: &TokenStream,
        span: SpanRange,
        limiter: &TokenStream,
    ) -> TokenStream {
        let private = self.private_at(hygienic(span.first));
        let call = match filter {
            Filter::Debug => quote_hygienic!(debug(#value)),
            Filter::Lower => quote_hygienic!(lower(#value)),
            Filter::Trim => quote_hygienic!(trim(#value)),
            Filter::Hash => quote_hygienic!(hash(#value, #limiter)),
            Filter::Subnet(SubnetBits { ipv4, ipv6 }) => quote_hygienic!(subnet(#value, #ipv4, #ipv6)),
        };
        quote_spanned!(hygienic(span.last)=> #private::#call)
    }

    pub(super) fn limiter(self) -> TokenStream {
        if self.model.limiter.is_some() {
            return quote_hygienic!(tallygate_limiter);
        }
        let private = self.private();
        quote_hygienic!(#private::installed())
    }

    /// Returns a value of the context, which is read while the key is rendered.
    pub(super) fn in_context(self, placeholder: &TemplateValue, span: SpanRange, limiter: &TokenStream) -> TokenStream {
        let private = self.private_at(hygienic(span.first));
        let name = &placeholder.root;
        if !placeholder.alternatives.is_empty() {
            let alternatives =
                paired(placeholder.alternatives.iter().map(|value| self.in_context(value, span, limiter)));
            return quote_spanned!(hygienic(span.last)=> #private::first_in_context(#name, #alternatives));
        }
        let filter = self.context_filter(placeholder, span, limiter);
        match filter {
            None => quote_spanned!(hygienic(span.last)=> #private::context(#name)),
            Some(filter) => quote_spanned!(hygienic(span.last)=> #private::context_filtered(#name, #filter)),
        }
    }

    pub(super) fn push_in_context(
        self,
        target: &TokenStream,
        placeholder: &TemplateValue,
        span: SpanRange,
    ) -> TokenStream {
        let private = self.private();
        let name = &placeholder.root;
        match self.context_filter(placeholder, span, &self.limiter()) {
            None => quote_hygienic!(#private::push_context(#target, #name);),
            Some(filter) => quote_hygienic!(#private::push_context_filtered(#target, #name, #filter);),
        }
    }

    fn context_filter(
        self,
        placeholder: &TemplateValue,
        span: SpanRange,
        limiter: &TokenStream,
    ) -> Option<TokenStream> {
        let value = quote_hygienic!(tallygate_value);
        let nested = placeholder.filters.iter().fold(None, |nested, filter| {
            let value = nested.map_or_else(|| value.clone(), |nested| quote_hygienic!(&#nested));
            Some(self.filtered(*filter, &value, span, limiter))
        });
        nested.map(|filtered| quote_hygienic!(|tallygate_value: &::core::primitive::str| #filtered))
    }
}
