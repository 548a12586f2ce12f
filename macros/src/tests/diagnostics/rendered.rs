//! Diagnostics as the compiler writes them.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use proc_macro2::TokenStream;

use super::annotated::{self, Annotated};
use super::case::Case;
use crate::pipeline::try_limit;

/// What the compiler adds to an error at the whole attribute.
const ORIGIN: &str = "this error originates in the attribute macro `rate_limit` (in Nightly builds, run with \
                      -Z macro-backtrace for more info)";

/// Returns all that the attribute reports in a file.
pub(super) fn diagnostics(case: &Case) -> String {
    let file: TokenStream = case.text().parse().expect("a case consists of tokens");
    let reports: Vec<_> = annotated::items(file).into_iter().flat_map(|item| reports(case, item)).collect();
    reports.join("\n")
}

fn reports(case: &Case, annotated: Annotated) -> Vec<String> {
    let Annotated { arguments, item, attribute } = annotated;
    let errors = try_limit(arguments, &item).err();
    errors.into_iter().flatten().map(|error| report(case, &error, attribute.clone())).collect()
}

fn report(case: &Case, error: &syn::Error, attribute: Range<usize>) -> String {
    let message = error.to_string();
    let path = case.path();
    let place = error.span().byte_range();
    // The span of the attribute has no bytes of its own.
    let whole = place.is_empty();
    let annotation = AnnotationKind::Primary.span(if whole { attribute } else { place });
    let snippet = Snippet::source(case.text()).path(&path).annotation(annotation);
    let group = Level::ERROR.primary_title(&message).element(snippet);
    let group = if whole { group.element(Level::NOTE.message(ORIGIN)) } else { group };
    let rendered = Renderer::plain().render(&[group]);
    rendered.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
