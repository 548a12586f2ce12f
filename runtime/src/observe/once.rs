//! What is noted once: what was reported, and that something listens to calls.

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

/// Whether more than the log, the metrics and the spans hears of calls. It is never set back: what listens once, like a layer of
/// a web server, mostly listens for ever.
static HAS_LISTENERS: AtomicBool = AtomicBool::new(false);

/// Notes that something listens: a context whose decisions are collected, or a limiter that counts denied subjects.
pub(crate) fn note_listener() {
    HAS_LISTENERS.store(true, Ordering::Relaxed);
}

/// Whether something may listen. A call that nobody hears of is decided without looking up its context, so this has to be one
/// comparison.
#[inline]
pub(crate) fn has_listeners() -> bool {
    HAS_LISTENERS.load(Ordering::Relaxed)
}
