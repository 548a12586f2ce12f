//! A clock that goes back.

use tallygate_rules::MAX_STANDSTILL;

use crate::micros;

/// Whether the clock was set back since that time. If it is back by little, it stands still until it is where it was.
#[inline]
pub(super) fn is_set_back(since_us: u64, now_us: u64) -> bool {
    since_us > now_us + micros::from_duration(MAX_STANDSTILL)
}
