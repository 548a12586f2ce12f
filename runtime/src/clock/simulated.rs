//! A clock that a simulation moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that stands still until a simulation moves it. Clones show the same time.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedClock(Arc<AtomicU64>);

impl SimulatedClock {
    pub(crate) fn new(us: u64) -> Self {
        Self(Arc::new(AtomicU64::new(us)))
    }

    pub(crate) fn now_us(&self) -> u64 {
        // Whoever moves it makes the calls as well: there is nothing to keep in order.
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, us: u64) {
        self.0.store(us, Ordering::Relaxed);
    }
}
