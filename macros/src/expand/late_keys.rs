//! Keys that are rendered when the future of a function is polled, because they show values of its context.
//!
//! Only a function that is not `async` and returns a future needs them: an `async fn` does not run before it is polled.
//! The values of its arguments are rendered when it is called, so that the future captures no argument.

use proc_macro2::{Ident, Span, TokenStream};
use quote::format_ident;

use crate::expand::context::{ExpandedFunction, Expansion, quote_hygienic};
use crate::expand::message::EarlyValue;
use crate::expand::subject::{paired, texts};
use crate::template::{SpannedTemplate, TemplateValue};

impl<'m> Expansion<'m> {
    pub(super) fn has_late_keys(self) -> bool {
        let is_split = self.expanded == ExpandedFunction::Limited && self.function.ends_with_async_block();
        is_split && self.model.keys().flat_map(SpannedTemplate::placeholders).any(TemplateValue::is_in_context)
    }

    pub(super) fn late_key_values(self) -> impl Iterator<Item = EarlyValue<'m>> {
        let keys = self.has_late_keys().then(|| self.late_keys()).into_iter().flatten();
        keys.enumerate().flat_map(|(number, (_, key))| {
            let values = key.into_iter().flat_map(move |key| key.placeholders().enumerate().map(move |at| (key, at)));
            values.filter(|(_, (_, placeholder))| !placeholder.is_in_context()).map(
                move |(key, (index, placeholder))| EarlyValue {
                    name: name(number, index),
                    placeholder,
                    span: key.span,
                },
            )
        })
    }

    /// Renders the keys and decides the deferred call.
    pub(super) fn late_admission(self) -> TokenStream {
        let private = self.private();
        let subject = |(number, key): (usize, Option<&SpannedTemplate>)| {
            let texts = texts(key);
            let values = self.late_values(number, key);
            quote_hygienic!(#private::subject(#texts, #values))
        };
        let mut subjects = self.late_keys().enumerate().map(|(number, (label, key))| (label, subject((number, key))));
        let main = subjects.next().map(|(_, subject)| subject);
        let others = subjects.map(|(label, subject)| quote_hygienic!((#label, #subject)));
        let others: Vec<_> = others.collect();
        let is_hashed = |placeholder: &TemplateValue| placeholder.is_in_context() && placeholder.is_hashed();
        let uses_limiter = self.model.keys().flat_map(SpannedTemplate::placeholders).any(is_hashed);
        let limiter = if uses_limiter { quote_hygienic!(tallygate_limiter) } else { quote_hygienic!(_) };
        quote_hygienic!(tallygate_call.enter_with(move |#limiter| (#main, [#(#others),*])))
    }

    /// Returns the main key, if there is one, and the keys of the other subjects, all with their labels.
    fn late_keys(self) -> impl Iterator<Item = (&'m str, Option<&'m SpannedTemplate>)> {
        let others = self.model.other_subjects().into_iter().map(|other| (other.label, other.key));
        std::iter::once(("", self.model.key.as_ref())).chain(others)
    }

    fn late_values(self, number: usize, key: Option<&SpannedTemplate>) -> TokenStream {
        let placeholders =
            key.into_iter().flat_map(|key| key.placeholders().map(|placeholder| (placeholder, key.span)));
        let values = placeholders.enumerate().map(|(index, (placeholder, span))| {
            if placeholder.is_in_context() {
                return self.in_context(placeholder, span, &quote_hygienic!(tallygate_limiter));
            }
            let name = name(number, index);
            quote_hygienic!(&*#name)
        });
        paired(values)
    }
}

fn name(key: usize, placeholder: usize) -> Ident {
    format_ident!("tallygate_value_{placeholder}_of_key_{key}", span = Span::mixed_site())
}
