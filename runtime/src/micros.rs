//! Times in whole microseconds, the unit of tallies and scripts.

use std::time::Duration;

/// Returns the microseconds of a duration.
///
/// Durations here are far below 2^53 microseconds, because they come from the clock or were validated. A longer one
/// counts as endless.
#[inline]
pub(crate) fn from_duration(duration: Duration) -> u64 {
    // Not by `as_micros`, which calculates in 128 bits.
    duration.as_secs().saturating_mul(1_000_000).saturating_add(u64::from(duration.subsec_micros()))
}

/// Returns the microseconds of a duration, rounded up: only zero gives zero.
pub(crate) fn rounded_up(duration: Duration) -> u64 {
    from_duration(duration).saturating_add(u64::from(!duration.subsec_nanos().is_multiple_of(1_000)))
}
