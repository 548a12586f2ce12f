//! The mistakes in a file of policies.

use std::error::Error as StdError;
use std::fmt;

use crate::bounds::shown_message;

/// A place in a text: a line and a column, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) line: usize,
    /// In characters.
    pub(crate) column: usize,
}

/// A mistake in a file of policies: where it is, what is wrong, and the remedy.
///
/// It is written as `line 3, column 10: …`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Mistake {
    place: Place,
    message: String,
}

impl Mistake {
    pub(crate) fn new(place: Place, message: impl Into<String>) -> Self {
        Self { place, message: shown_message(message.into().into()).into_owned() }
    }

    /// Returns the line, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.place.line
    }

    /// Returns the column in characters, counted from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.place.column
    }

    /// Returns what is wrong, and the remedy, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line(), self.column(), self.message)
    }
}

impl StdError for Mistake {}

tallygate_rules::__debug_by_display!(Mistake, ConfigError);

/// A file of policies that is refused: all its mistakes, in the order of their places.
///
/// It is written as one line for each mistake.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigError {
    mistakes: Vec<Mistake>,
}

impl ConfigError {
    pub(crate) fn new(mut mistakes: Vec<Mistake>) -> Self {
        mistakes.sort_by_key(|mistake| mistake.place);
        mistakes.dedup();
        Self { mistakes }
    }

    /// Returns the mistakes, in the order of their places.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.mistakes.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl StdError for ConfigError {
    /// Returns the first mistake.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.mistakes.first().map(|mistake| mistake as _)
    }
}
