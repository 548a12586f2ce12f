//! What a rejection means.

use std::fmt;

/// What a rejection means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectionKind {
    /// Too many calls.
    Limited,
    /// The same call again, within the window of `prevent_duplicate`.
    Duplicate,
    /// Too many concurrent calls.
    Concurrency,
    /// A call of a subject that is banned.
    Banned,
    /// The backend did not decide within the deadline, or answered with an error.
    Unavailable,
}

impl RejectionKind {
    /// Returns the kind in one word: `limited`, `duplicate`, `concurrency`, `banned` or `unavailable`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Limited => "limited",
            Self::Duplicate => "duplicate",
            Self::Concurrency => "concurrency",
            Self::Banned => "banned",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for RejectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
