//! A part: the cost of several calls, taken ahead as one call.

use crate::call::Demand;
use crate::clock::Clock;
use crate::decision::{AdmittedAt, Report};
use crate::sync::atomic::{AtomicU64, Ordering};

/// The most units of one part, so that units and calls fit into one number.
pub(super) const MOST_UNITS: u64 = u32::MAX as u64;

/// One call in `state`.
const CALL: u64 = 1 << 32;

pub(super) struct Part {
    /// How many units were taken: at most [`MOST_UNITS`].
    pub(super) units: u64,
    /// The units that are left, and in the upper half the calls that have used the others. It is one number, as all
    /// threads change both with each call. There are no more calls than units.
    state: AtomicU64,
    /// From this time on, the part decides nothing.
    pub(super) ends_us: u64,
    /// When Redis has counted the part.
    pub(super) at: AdmittedAt,
    /// The report of the answer that admitted the part.
    report: Report,
}

/// The units that one call has taken from a part.
pub(super) struct Taken {
    /// When Redis has counted the part.
    pub(super) at: AdmittedAt,
    /// The time at which it was taken. The call has to be made before `ends_us`.
    pub(super) now_us: u64,
    pub(super) ends_us: u64,
    /// For how many calls of the subject too little had been left before.
    pub(super) missed_calls: u64,
    /// Where the rules stood then, with the units that this process has left; empty unless it was asked for.
    pub(super) report: Report,
}

/// What has become of units that were put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PutBack {
    /// Their part has ended, and its rest was given back without them.
    TooLate,
    /// No call has missed them.
    Unnoticed,
    /// A call found too little left meanwhile.
    Missed,
}

impl Part {
    pub(super) fn new(units: u64, ends_us: u64, at: AdmittedAt, report: Report) -> Self {
        Self { units, state: AtomicU64::new(units), ends_us, at, report }
    }

    /// Takes units, if enough are left. Returns the time at which they were taken.
    pub(super) fn take(&self, cost: u64, clock: &Clock) -> Option<u64> {
        let taken = |state| (left_of(state) >= cost).then(|| state - cost + CALL);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, taken).ok()?;
        // The clock is read only now: a call that was stalled in between must not run after the end.
        let now_us = clock.now_us();
        if now_us < self.ends_us {
            return Some(now_us);
        }
        // If the part was ended meanwhile, the units count as used.
        let _ = self.put_back(cost);
        None
    }

    /// Puts back the units of a call that is not made. Returns whether there was still a part to add them to: what is
    /// left at its end goes back to the store.
    pub(super) fn put_back(&self, cost: u64) -> bool {
        let back = |state| (left_of(state) + cost <= self.units && state >= CALL).then(|| state + cost - CALL);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, back).is_ok()
    }

    pub(super) fn taken(&self, now_us: u64, missed_calls: u64, report: Report) -> Taken {
        Taken { at: self.at.clone(), ends_us: self.ends_us, now_us, missed_calls, report }
    }

    /// Returns the report of the answer, with the units that are left of all parts added.
    pub(super) fn report(&self, left: u64) -> Report {
        self.report.with_more(|_| left)
    }

    /// Whether `taken` is from this part.
    pub(super) fn gave(&self, taken: &Taken) -> bool {
        self.ends_us == taken.ends_us && self.at == taken.at
    }

    pub(super) fn left(&self) -> u64 {
        left_of(self.state.load(Ordering::Relaxed))
    }

    /// Returns how many units calls can still use.
    pub(super) fn left_at(&self, now_us: u64) -> u64 {
        if now_us < self.ends_us { self.left() } else { 0 }
    }

    /// Returns what calls have used of it.
    pub(super) fn used(&self) -> Demand {
        let state = self.state.load(Ordering::Relaxed);
        Demand { calls: state / CALL, cost: self.units.saturating_sub(left_of(state)) }
    }

    /// Ends the part, and returns the units that were left.
    pub(super) fn end(&self) -> u64 {
        left_of(self.state.swap(0, Ordering::AcqRel))
    }
}

fn left_of(state: u64) -> u64 {
    state % CALL
}

#[cfg(test)]
#[cfg(tallygate_shuttle)]
mod threads {
    use std::sync::Arc;

    use shuttle::thread;

    use super::*;
    use crate::sync::interleaved::explore;

    const UNITS: u64 = 3;

    #[test]
    fn threads_use_and_give_back_exactly_what_was_taken() {
        explore(|| {
            let part = Arc::new(Part::new(UNITS, u64::MAX, AdmittedAt::Once(0), Report::default()));
            let takers = [1, 2].map(|cost| {
                let part = Arc::clone(&part);
                thread::spawn(move || {
                    let clock = Clock::tokio();
                    (0..2).filter(|_| part.take(cost, &clock).is_some()).count() as u64 * cost
                })
            });
            let given_back = part.end();
            let used: u64 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
            assert_eq!(used + given_back, UNITS);
        });
    }
}
