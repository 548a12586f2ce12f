//! The data that all parts of an expansion share: the model, the function, the paths of the runtime, and spans.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::Path;

use crate::diagnostic::SpanRange;
use crate::model::Model;
use crate::shape::Function;

/// Quotes tokens whose local names cannot collide with the user's.
macro_rules! quote_hygienic {
    ($($tokens:tt)*) => { ::quote::quote_spanned!(::proc_macro2::Span::mixed_site()=> $($tokens)*) };
}
pub(super) use quote_hygienic;

#[derive(Clone, Copy)]
pub(super) struct Expansion<'m> {
    pub(super) model: &'m Model,
    pub(super) function: &'m Function,
    pub(super) expanded: ExpandedFunction,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum ExpandedFunction {
    Limited,
    /// The companion, which returns the check of a call.
    Companion,
}

impl Expansion<'_> {
    pub(super) fn runtime(self) -> TokenStream {
        runtime_path(self.model.runtime.as_ref())
    }

    pub(super) fn private(self) -> TokenStream {
        let runtime = self.runtime();
        quote_hygienic!(#runtime::__private)
    }

    /// Returns the path of the runtime with a span of the user's code, where the compiler reports its errors.
    pub(super) fn runtime_at(self, span: Span) -> TokenStream {
        let at_place = |mut tree: TokenTree| {
            tree.set_span(span.resolved_at(tree.span()));
            tree
        };
        self.runtime().into_iter().map(at_place).collect()
    }

    pub(super) fn private_at(self, span: Span) -> TokenStream {
        let runtime = self.runtime_at(span);
        quote_spanned!(span=> #runtime::__private)
    }
}

pub(super) fn runtime_path(given: Option<&Path>) -> TokenStream {
    given.map_or_else(|| quote_hygienic!(::tallygate), ToTokens::to_token_stream)
}

/// Borrows an expression of the user, and reports errors about its type where the expression is written.
pub(super) fn borrowed(expression: &impl ToTokens, span: SpanRange) -> TokenStream {
    let reference = quote_spanned!(hygienic(span.first)=> &);
    let parenthesized = quote_spanned!(hygienic(span.last)=> (#expression));
    quote_hygienic!(#reference #parenthesized)
}

/// Returns the place of a user's span for tokens whose names cannot collide with the user's.
pub(super) fn hygienic(span: Span) -> Span {
    span.resolved_at(Span::mixed_site())
}
