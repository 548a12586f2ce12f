//! Mistakes: what is wrong, where, and what was probably meant.

use std::fmt::Display;

use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;

/// A stretch of source text, from one token to another.
///
/// Stable Rust cannot join two spans into one, but an error with a first and a last token underlines all in between.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) first: Span,
    pub(crate) last: Span,
}

impl Place {
    pub(crate) fn of(tokens: &impl ToTokens) -> Self {
        let mut trees = tokens.to_token_stream().into_iter();
        let first = trees.next().map_or_else(Span::call_site, |tree| tree.span());
        let last = trees.last().map_or(first, |tree| tree.span());
        Self { first, last }
    }

    /// The place of the whole attribute.
    pub(crate) fn attribute() -> Self {
        Self::from(Span::call_site())
    }

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

/// A value beside the place it is written at.
#[derive(Clone)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

/// The mistakes found so far, so that all of them are reported at once.
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

    /// Returns how many there are so far.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Ends with a mistake that leaves nothing to go on with.
    pub(crate) fn and(self, last: syn::Error) -> syn::Error {
        joined(self.found, last)
    }

    /// Returns the value of a reading that may have failed.
    pub(crate) fn keep<T>(&mut self, read: syn::Result<T>) -> Option<T> {
        read.map_err(|mistake| self.add(mistake)).ok()
    }

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

/// Makes an error at a place.
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
    fn the_nearest_name_is_the_one_that_was_meant() {
        assert_eq!(nearest("cuont", ["per", "count"]), Some("count"));
        assert_eq!(nearest("prevent_duplicates", ["rule", "prevent_duplicate"]), Some("prevent_duplicate"));
        assert_eq!(nearest("pre", ["rule", "per"]), Some("per"));
    }

    #[test]
    fn a_name_like_no_other_suggests_nothing() {
        assert_eq!(nearest("window", ["per", "count"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
