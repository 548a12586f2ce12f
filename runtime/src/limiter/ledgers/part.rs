//! A part: calls that were taken ahead at once, as one call of their cost.

use crate::clock::Clock;
use crate::decision::{AdmittedAt, Report};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Calls that were taken ahead at once.
pub(super) struct Part {
    /// How much was taken.
    pub(super) units: u64,
    left: AtomicU64,
    /// From then on, it decides nothing.
    pub(super) ends_us: u64,
    /// When Redis has counted it.
    pub(super) at: AdmittedAt,
    /// Where the rules stood then.
    report: Report,
}

/// What one call has taken of a part.
pub(in crate::limiter) struct Taken {
    /// When Redis has counted it.
    pub(in crate::limiter) at: AdmittedAt,
    /// The call has to be made before.
    pub(in crate::limiter) ends_us: u64,
    /// Where the rules stood then, with what this process has left; nothing unless it was asked for.
    pub(in crate::limiter) report: Report,
}

impl Part {
    pub(super) fn new(units: u64, ends_us: u64, at: AdmittedAt, report: Report) -> Self {
        Self { units, left: AtomicU64::new(units), ends_us, at, report }
    }

    /// Takes that much, if it is there. Returns the time at which it was.
    pub(super) fn take(&self, cost: u64, clock: &Clock) -> Option<u64> {
        let taken = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(cost));
        taken.ok()?;
        // Only then the clock is read: a call that stood still in between must not run after the end.
        let now_us = clock.now_us();
        if now_us < self.ends_us {
            return Some(now_us);
        }
        self.put_back(cost);
        None
    }

    /// Puts back what was taken for a call that is not made.
    pub(super) fn put_back(&self, cost: u64) {
        self.left.fetch_add(cost, Ordering::AcqRel);
    }

    pub(super) fn taken(&self, left: u64, is_reported: bool) -> Taken {
        let report = if is_reported { self.report.with_more(|_| left) } else { Report::default() };
        Taken { at: self.at.clone(), ends_us: self.ends_us, report }
    }

    /// Whether that was taken of this part.
    pub(super) fn gave(&self, taken: &Taken) -> bool {
        self.ends_us == taken.ends_us && self.at == taken.at
    }

    pub(super) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Ends it, and returns what is left.
    pub(super) fn end(&self) -> u64 {
        self.left.swap(0, Ordering::AcqRel)
    }
}
