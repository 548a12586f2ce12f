//! The log that a tally has when it is measured.

use crate::tally::Logged;

/// As many calls as a log ever has.
const FULL: u64 = 2 * 65_536;

/// As many as are read at once.
const FEW: u64 = 32;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Log {
    /// What the first call has left.
    AsItIs,
    /// Full of calls that all count.
    Live,
    /// Full of calls that no longer count.
    Dead,
    /// Full of calls that are later than now, as after the clock was set back.
    Future,
    /// Full of calls, half of them later than now.
    Around,
    /// A few calls that all count.
    Few,
    /// Full, with so many calls behind the first one.
    Behind(u64),
}

impl Log {
    /// Returns the calls, given the time of the first one.
    pub(super) fn calls(self, called_us: u64, now_us: u64, reach_us: u64) -> impl Iterator<Item = Logged> {
        let (first_us, last_us) = match self {
            Self::Live | Self::Few => (now_us - reach_us / 2, now_us - 1),
            Self::Dead => (now_us - 3 * reach_us, now_us - 2 * reach_us),
            Self::Future => (now_us + reach_us, now_us + 2 * reach_us),
            Self::Around => (now_us - reach_us / 2, now_us + reach_us / 2),
            Self::AsItIs => (called_us, called_us),
            Self::Behind(_) => (now_us - reach_us / 2, called_us - 1),
        };
        let (before, behind) = match self {
            Self::AsItIs => (0, 1),
            Self::Behind(behind) => (FULL - behind - 1, behind + 1),
            Self::Few => (FEW, 0),
            _ => (FULL, 0),
        };
        let before = (0..before).map(move |call| first_us + (last_us - first_us) / FULL * call);
        let times = before.chain((0..behind).map(move |call| called_us + call));
        // Unlike costs, so that no guess is right.
        let weight = || if fastrand::u8(..8) == 0 { fastrand::u32(1..1_000) } else { 1 };
        times.map(move |time_us| Logged { time_us, weight: weight() })
    }
}
