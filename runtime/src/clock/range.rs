//! The times that a clock can be set to.

use std::ops::RangeInclusive;

use tallygate_rules::MAX_PER;

/// The times that a clock can be set to, in microseconds since 1970: from the longest window after that to the longest window
/// before 2^53 microseconds, which the script counts exactly.
pub(crate) const RANGE_US: RangeInclusive<u64> = {
    let longest_us = MAX_PER.as_secs() * 1_000_000;
    longest_us..=(1 << 53) - longest_us
};
