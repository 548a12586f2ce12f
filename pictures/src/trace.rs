//! The calls that all algorithms decide, in milliseconds since the start.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A full minute, at which windows of ten seconds start as well: the eighth hour of a day in 2027.
const START: Duration = Duration::from_secs(1_800_000_000);

/// When the burst begins and ends: around second 19, at which the fixed window ends, and 20, at which the schedule ticks.
pub(crate) const BURST_MS: [u64; 2] = [16_000, 22_500];

/// When the steady calls begin and end.
pub(crate) const STEADY_MS: [u64; 2] = [28_000, 48_000];

/// Returns the times of the calls: one alone, which opens a fixed window, then a burst, then one call each second.
pub(crate) fn calls_ms() -> Vec<u64> {
    let burst = (BURST_MS[0]..=BURST_MS[1]).step_by(500);
    let steady = (STEADY_MS[0]..=STEADY_MS[1]).step_by(1_000);
    [9_000].into_iter().chain(burst).chain(steady).collect()
}

/// Returns the time of a call.
pub(crate) fn time(ms: u64) -> SystemTime {
    UNIX_EPOCH + START + Duration::from_millis(ms)
}
