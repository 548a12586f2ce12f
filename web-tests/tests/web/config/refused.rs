//! Files that are refused: each with a `‸` before every place that is reported, and what is said of it.

mod compiled;
mod plans;
mod policies;
mod requests;

/// Whether the schema refuses a file, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Schema {
    Refuses,
    /// What is wrong is beyond what a schema can say.
    Accepts,
}

/// A file that is refused.
pub(super) struct Refused {
    pub(super) text: &'static str,
    /// What is said at each place, in the order of the places.
    pub(super) mistakes: &'static [&'static str],
    pub(super) schema: Schema,
    /// The compile error of the same mistake, by its file in `tests/ui/fail`.
    pub(super) compile_error: Option<&'static str>,
}

const fn refused(schema: Schema, text: &'static str, mistakes: &'static [&'static str]) -> Refused {
    Refused { text, mistakes, schema, compile_error: None }
}

/// The compiler says the same.
const fn as_compiled(compile_error: &'static str, schema: Schema, text: &'static str) -> Refused {
    Refused { text, mistakes: &[], schema, compile_error: Some(compile_error) }
}

/// Returns all of them.
pub(super) fn refused_files() -> impl Iterator<Item = &'static Refused> {
    [compiled::REFUSED, plans::REFUSED, policies::REFUSED, requests::REFUSED].into_iter().flatten()
}
