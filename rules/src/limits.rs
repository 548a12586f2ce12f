//! The greatest numbers that a policy may hold.

use std::time::Duration;

/// The most rules of one policy.
pub const MAX_RULES: usize = 64;

/// The most denials that a ban may wait for; their times are stored.
pub const MAX_DENIALS: u64 = 1_000;

/// The longest window: 3,660 days. Sums of times stay far below 2^53 microseconds, where Lua's numbers are exact.
pub const MAX_PER: Duration = Duration::from_secs(3_660 * 86_400);

/// The greatest count of an exact sliding window, which stores every unit of weight that it admits.
pub const MAX_SLIDING_COUNT: u64 = 1_000_000;

/// The greatest count of a sliding counter, 2^26: the product of two counts is exact.
pub const MAX_COUNTER_COUNT: u64 = 1 << 26;

/// The greatest integer that is exact in Lua, and so in every tally: 2^53 − 1.
pub const MAX_EXACT: u64 = (1 << 53) - 1;
