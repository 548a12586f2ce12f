//! Whether more than the log, the metrics and the spans hears of calls.

use std::sync::atomic::{AtomicBool, Ordering};

/// Never set back: what listens once, like a layer of a web server, mostly listens for ever.
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
