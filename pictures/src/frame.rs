//! What the lanes of a picture share: the scale of time, and how much room there is.

use crate::trace::{BURST_MS, STEADY_MS};

/// The first and the last moment that is shown, in seconds.
const FROM_S: u64 = 6;
const TO_S: u64 = 50;
const PIXELS_A_SECOND: u64 = 18;

pub(crate) const LEFT: u64 = 48;
pub(crate) const RIGHT: u64 = LEFT + (TO_S - FROM_S) * PIXELS_A_SECOND;
pub(crate) const WIDTH: u64 = RIGHT + 24;
/// Where the first lane begins, below the headings.
pub(crate) const TOP: u64 = 132;
pub(crate) const LANE_HEIGHT: u64 = 152;
/// Below the last lane.
pub(crate) const AXIS_HEIGHT: u64 = 40;

/// The seconds that are named below the lanes.
pub(crate) fn named_seconds() -> impl Iterator<Item = u64> {
    (FROM_S..=TO_S).filter(|second| second.is_multiple_of(5))
}

/// The parts of the trace that have names.
pub(crate) const PHASES: [([u64; 2], &str); 2] =
    [(BURST_MS, "a burst"), (STEADY_MS, "one call a second: twice the limit")];

/// Where a moment is.
pub(crate) fn x(ms: u64) -> u64 {
    LEFT + (ms.saturating_sub(FROM_S * 1_000) * PIXELS_A_SECOND / 1_000).min(RIGHT - LEFT)
}

/// The first and the last moment that is shown.
pub(crate) const SHOWN_MS: [u64; 2] = [FROM_S * 1_000, TO_S * 1_000];
