//! What the log reports once.

use std::sync::{Mutex, PoisonError};

/// The most names that are reported. They are in the code of the program, so they are few.
const MOST: usize = 64;

/// The names of which something was reported.
pub(crate) struct Reported(Mutex<Vec<String>>);

impl Reported {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Whether that name is to be reported now, as it was not yet.
    pub(crate) fn is_first(&self, name: &str) -> bool {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = reported.len() < MOST && reported.iter().all(|known| known != name);
        if is_first {
            reported.push(name.to_owned());
        }
        is_first
    }
}
