//! The subject, which owns what it shows, and the values of placeholders.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote_spanned};

use super::{Expansion, borrowed, ours, ours_at};
use crate::diagnostic::Place;
use crate::placeholder::{Filter, Placeholder};
use crate::template::{Part, Template, escape};

impl Expansion<'_> {
    /// Renders the subject.
    pub(super) fn subject(self) -> TokenStream {
        let private = self.private();
        self.model.key.as_ref().map_or_else(
            || ours!(let tallygate_subject = #private::subject();),
            |key| {
                let parts = self.parts(key);
                ours!(let mut tallygate_subject = #private::subject(); #parts)
            },
        )
    }

    /// Renders another subject.
    pub(super) fn rendered(self, key: &Template) -> TokenStream {
        let (private, parts) = (self.private(), self.parts(key));
        ours!({
            let mut tallygate_subject = #private::subject();
            #parts
            tallygate_subject
        })
    }

    fn parts(self, key: &Template) -> TokenStream {
        let (private, target) = (self.private(), ours!(&mut tallygate_subject));
        let part = |part: &Part| match part {
            Part::Text(text) => {
                let text = escape(text);
                ours!(#private::push_literal(#target, #text);)
            }
            Part::Value(placeholder) => self.pushed("push_value", &target, placeholder, key.place),
            Part::Rejection(_) => TokenStream::new(),
        };
        key.parts.iter().map(part).collect()
    }

    /// Adds a value to something, at the place of its template: an error about its type is one about the template.
    pub(super) fn pushed(
        self,
        push: &str,
        target: &TokenStream,
        placeholder: &Placeholder,
        place: Place,
    ) -> TokenStream {
        let push = proc_macro2::Ident::new(push, ours_at(place.last));
        let (private, value) = (self.private_at(ours_at(place.first)), self.value(placeholder, place));
        quote_spanned!(ours_at(place.last)=> #private::#push(#target, #value);)
    }

    /// Borrows a value, filtered.
    fn value(self, placeholder: &Placeholder, place: Place) -> TokenStream {
        let root = self.function.binding(&placeholder.root);
        let value = root.map(|root| placeholder.expression(&root, place)).into_token_stream();
        placeholder.filters.iter().fold(borrowed(&value, place), |value, filter| {
            let filtered = self.filtered(*filter, &value, place);
            quote_spanned!(ours_at(place.last)=> &#filtered)
        })
    }

    fn filtered(self, filter: Filter, value: &TokenStream, place: Place) -> TokenStream {
        let private = self.private_at(ours_at(place.first));
        let limiter = match self.model.limiter {
            Some(_) => ours!(&tallygate_limiter),
            None => self.installed(),
        };
        let call = match filter {
            Filter::Lower => ours!(lower(#value)),
            Filter::Trim => ours!(trim(#value)),
            Filter::Hash => ours!(hash(#value, #limiter)),
            Filter::Subnet => ours!(subnet(#value)),
        };
        quote_spanned!(ours_at(place.last)=> #private::#call)
    }
}
