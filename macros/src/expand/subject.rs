//! Subjects, which own their rendered text, and the values of placeholders.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote_spanned};

use crate::diagnostic::SpanRange;
use crate::expand::context::{Expansion, borrowed, hygienic, quote_hygienic};
use crate::template::{Filter, Part, Placeholder, Template, escape};

impl Expansion<'_> {
    pub(super) fn main_subject(self) -> TokenStream {
        let private = self.private();
        match &self.model.key {
            None => quote_hygienic!(let tallygate_subject = #private::subject();),
            Some(key) => {
                let parts = self.parts(key);
                quote_hygienic!(let mut tallygate_subject = #private::subject(); #parts)
            }
        }
    }

    /// Renders a key as an expression.
    pub(super) fn subject(self, key: &Template) -> TokenStream {
        let private = self.private();
        let parts = self.parts(key);
        quote_hygienic!({
            let mut tallygate_subject = #private::subject();
            #parts
            tallygate_subject
        })
    }

    /// Appends the value of a placeholder, at the place of its template: an error about its type is reported there.
    pub(super) fn push(
        self,
        function: &str,
        target: &TokenStream,
        placeholder: &Placeholder,
        span: SpanRange,
    ) -> TokenStream {
        let function = Ident::new(function, hygienic(span.last));
        let private = self.private_at(hygienic(span.first));
        let value = self.value(placeholder, span);
        quote_spanned!(hygienic(span.last)=> #private::#function(#target, #value);)
    }

    /// Returns the limiter of the call: the named one, or the installed one.
    pub(super) fn limiter(self) -> TokenStream {
        if self.model.limiter.is_some() {
            return quote_hygienic!(tallygate_limiter);
        }
        let private = self.private();
        quote_hygienic!(#private::installed())
    }

    fn parts(self, key: &Template) -> TokenStream {
        let private = self.private();
        let target = quote_hygienic!(&mut tallygate_subject);
        let part = |part: &Part| match part {
            Part::Text(text) => {
                let text = escape(text);
                quote_hygienic!(#private::push_literal(#target, #text);)
            }
            Part::Value(placeholder) => self.push("push_value", &target, placeholder, key.span),
            Part::Rejection(_) => TokenStream::new(),
        };
        key.parts.iter().map(part).collect()
    }

    /// Borrows a value, filtered.
    fn value(self, placeholder: &Placeholder, span: SpanRange) -> TokenStream {
        let root = self.function.binding(&placeholder.root);
        let value = root.map(|root| placeholder.expression(&root, span)).into_token_stream();
        placeholder.filters.iter().fold(borrowed(&value, span), |value, filter| {
            let filtered = self.filtered(*filter, &value, span);
            quote_spanned!(hygienic(span.last)=> &#filtered)
        })
    }

    fn filtered(self, filter: Filter, value: &TokenStream, span: SpanRange) -> TokenStream {
        let private = self.private_at(hygienic(span.first));
        let call = match filter {
            Filter::Lower => quote_hygienic!(lower(#value)),
            Filter::Trim => quote_hygienic!(trim(#value)),
            Filter::Hash => {
                let limiter = self.limiter();
                quote_hygienic!(hash(#value, &#limiter))
            }
            Filter::Subnet => quote_hygienic!(subnet(#value)),
        };
        quote_spanned!(hygienic(span.last)=> #private::#call)
    }
}
