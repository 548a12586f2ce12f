//! What the log reports once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The most texts that are reported. They come from the code of the program, so they are few.
const MOST: usize = 1_000;

/// The texts of which something was reported.
pub(crate) struct Reported(Mutex<BTreeSet<String>>);

impl Reported {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeSet::new()))
    }

    /// Whether that text is to be reported now, as it was not yet.
    pub(crate) fn is_first(&self, text: &str) -> bool {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reported.len() < MOST && !reported.contains(text) && reported.insert(text.to_owned())
    }
}
