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
        let subject = self.model.key.as_ref().map_or_else(|| ours!(#private::subject()), |key| self.rendered(key));
        ours!(let tallygate_subject = #subject;)
    }

    /// Renders a key.
    pub(super) fn rendered(self, key: &Template) -> TokenStream {
        let private = self.private();
        let parts = key.parts.iter().map(|part| match part {
            Part::Text(text) => {
                let text = escape(text);
                ours!(#private::push_literal(&mut tallygate_subject, #text);)
            }
            Part::Value(placeholder) => {
                let target = ours!(&mut tallygate_subject);
                self.pushed("push_value", &target, placeholder, key.place)
            }
            Part::Told(_) => TokenStream::new(),
        });
        ours!({
            let mut tallygate_subject = #private::subject();
            #(#parts)*
            tallygate_subject
        })
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
