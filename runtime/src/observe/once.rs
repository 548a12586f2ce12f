//! Notes of what happens once: a report, and the first listener to calls.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lock::lock;

/// Notes that an event was reported that the log reports once. Unlike a `Once`, it blocks no thread.
#[derive(Debug, Default)]
pub(crate) struct ReportedOnce(AtomicBool);

impl ReportedOnce {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Returns whether the event was not reported before, and notes it.
    pub(crate) fn is_first(&self) -> bool {
        !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Relaxed)
    }
}

/// The most texts that are noted. They come from the code of the program, so there are few.
const MOST_REPORTED: usize = 1_000;

/// Notes the texts that were reported. Each is reported once.
pub(crate) struct ReportedTexts(Mutex<BTreeSet<String>>);

impl ReportedTexts {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeSet::new()))
    }

    /// Returns whether this text was not reported before, and notes it.
    pub(crate) fn is_first(&self, text: &str) -> bool {
        let mut reported = lock(&self.0);
        reported.len() < MOST_REPORTED && !reported.contains(text) && reported.insert(text.to_owned())
    }
}

/// Whether listeners beside the log, the metrics and the spans hear of calls. It is never reset: most listeners, like a
/// layer of a web server, stay for ever.
static HAS_LISTENERS: AtomicBool = AtomicBool::new(false);

/// Notes a listener: a context whose decisions are collected, or a limiter that counts denied subjects.
pub(crate) fn note_listener() {
    HAS_LISTENERS.store(true, Ordering::Relaxed);
}

/// Whether there may be listeners. Without one, a call is decided without looking up its context, so this has to be one
/// comparison.
#[inline]
pub(crate) fn has_listeners() -> bool {
    HAS_LISTENERS.load(Ordering::Relaxed)
}
