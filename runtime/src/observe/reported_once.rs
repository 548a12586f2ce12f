//! What is reported once.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether something was reported that the log reports once. Unlike a `Once`, it blocks no thread.
#[derive(Default)]
pub(crate) struct ReportedOnce(AtomicBool);

impl ReportedOnce {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Returns whether it was not reported before, and notes it.
    pub(crate) fn is_first(&self) -> bool {
        !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Relaxed)
    }
}
