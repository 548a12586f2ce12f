//! A promise that is broken.

use std::fmt;

/// A promise that a history breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When, in microseconds of virtual time.
    pub us: u64,
    /// The promise.
    pub promise: &'static str,
    /// How it is broken.
    pub how: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} µs: {}: {}", self.us, self.promise, self.how)
    }
}
