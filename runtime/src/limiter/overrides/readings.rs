//! The order of what is read from Redis: what was asked for later goes before what was asked for earlier.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Keeps what an old reading found from replacing what a newer one has found. A refresh that began before an override was
/// set may end after it was adopted.
#[derive(Debug, Default)]
pub(super) struct Readings {
    begun: AtomicU64,
    /// The latest reading that was adopted.
    adopted: Mutex<u64>,
}

/// One reading of what is stored. It began before anything was asked.
#[derive(Debug)]
pub(super) struct Reading(u64);

impl Readings {
    /// Begins a reading.
    pub(super) fn begin(&self) -> Reading {
        Reading(self.begun.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Adopts what a reading has found, unless that of a later one was adopted. One is adopted after the other.
    pub(super) fn adopt<T>(&self, reading: &Reading, adopt: impl FnOnce() -> T) -> Option<T> {
        let mut adopted = self.adopted.lock().unwrap_or_else(PoisonError::into_inner);
        if reading.0 < *adopted {
            return None;
        }
        *adopted = reading.0;
        Some(adopt())
    }
}
