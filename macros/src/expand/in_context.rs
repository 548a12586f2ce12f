//! Values of the context, in keys and messages.

use proc_macro2::TokenStream;
use quote::quote_spanned;

use crate::diagnostic::SpanRange;
use crate::expand::context::{Expansion, hygienic, quote_hygienic};
use crate::template::TemplateValue;

impl Expansion<'_> {
    /// Returns a value of the context, which is read when the key is rendered.
    pub(super) fn in_context(self, placeholder: &TemplateValue, span: SpanRange, limiter: &TokenStream) -> TokenStream {
        let private = self.private_at(hygienic(span.first));
        let name = &placeholder.root;
        let filter = self.context_filter(placeholder, span, limiter);
        match filter {
            None => quote_spanned!(hygienic(span.last)=> #private::context(#name)),
            Some(filter) => quote_spanned!(hygienic(span.last)=> #private::context_filtered(#name, #filter)),
        }
    }

    /// Appends a value of the context to a message.
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

    /// Returns the closure that filters the value, if there are filters.
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
