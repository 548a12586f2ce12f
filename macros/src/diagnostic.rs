//! Errors in the attribute, with their places, and the name that was probably meant.

use std::fmt::Display;

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;

/// The source text from one token to another.
///
/// Stable Rust cannot join two spans, but an error with a first and a last token underlines all between them.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) first: Span,
    pub(crate) last: Span,
}

impl Place {
    /// Returns the place of some tokens.
    pub(crate) fn of(tokens: &impl ToTokens) -> Self {
        let mut trees = tokens.to_token_stream().into_iter();
        let first = trees.next().map_or_else(Span::call_site, |tree| tree.span());
        let last = trees.last().map_or(first, |tree| tree.span());
        Self { first, last }
    }

    /// Returns the place of the whole attribute.
    pub(crate) fn attribute() -> Self {
        Self::from(Span::call_site())
    }

    /// Returns the place from here to the end of another.
    pub(crate) fn to(self, end: impl Into<Self>) -> Self {
        Self { first: self.first, last: end.into().last }
    }
}

impl From<Span> for Place {
    fn from(span: Span) -> Self {
        Self { first: span, last: span }
    }
}

impl ToTokens for Place {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend([self.first, self.last].map(|span| Ident::new("place", span).into_token_stream()));
    }
}

/// A value and its place.
#[derive(Clone)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

/// The errors found so far: all of them are reported at once.
#[derive(Default)]
pub(crate) struct Mistakes {
    found: Option<syn::Error>,
    number: usize,
}

impl Mistakes {
    pub(crate) fn report(&mut self, place: impl Into<Place>, message: impl Display) {
        self.add(error(place, message));
    }

    pub(crate) fn add(&mut self, mistake: syn::Error) {
        let found = std::mem::take(&mut self.found);
        self.found = Some(joined(found, mistake));
        self.number += 1;
    }

    /// Returns the number of errors.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Adds the last error, after which nothing can be checked.
    pub(crate) fn and(self, last: syn::Error) -> syn::Error {
        joined(self.found, last)
    }

    /// Returns the value, or reports the error.
    pub(crate) fn keep<T>(&mut self, read: syn::Result<T>) -> Option<T> {
        read.map_err(|mistake| self.add(mistake)).ok()
    }

    /// Returns all errors, if there are any.
    pub(crate) fn finish(self) -> syn::Result<()> {
        self.found.map_or(Ok(()), Err)
    }
}

fn joined(found: Option<syn::Error>, last: syn::Error) -> syn::Error {
    match found {
        Some(mut found) => {
            found.combine(last);
            found
        }
        None => last,
    }
}

/// Returns an error at a place.
pub(crate) fn error(place: impl Into<Place>, message: impl Display) -> syn::Error {
    syn::Error::new_spanned(place.into(), message)
}

/// Returns the known name that was probably meant.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let with_distance = |candidate| (strsim::damerau_levenshtein(name, candidate), candidate);
    let (distance, nearest) = known.into_iter().map(with_distance).min_by_key(|&(distance, _)| distance)?;
    // A third of the letters may be wrong, and in a short name one letter.
    (distance <= (name.chars().count() / 3).max(1)).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        assert_eq!(nearest("cuont", ["per", "count"]), Some("count"));
        assert_eq!(nearest("prevent_duplicates", ["rule", "prevent_duplicate"]), Some("prevent_duplicate"));
        assert_eq!(nearest("pre", ["rule", "per"]), Some("per"));
    }

    #[test]
    fn a_name_unlike_the_known_ones_has_no_suggestion() {
        assert_eq!(nearest("window", ["per", "count"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
