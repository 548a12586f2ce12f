//! The greatest and smallest numbers of a policy.

use std::time::Duration;

/// The most rules of one policy, and so the most subjects of one call: a server decides all of them in one step.
pub const MAX_RULES: usize = 32;

/// The longest name of a rule, in bytes: the name is part of response headers, logs and metrics.
pub const MAX_NAME_BYTES: usize = 128;

/// The longest name of a unit, in bytes: the name is part of metrics, response fields and keys.
pub const MAX_UNIT_BYTES: usize = 32;

/// The most denials that a ban may wait for: the time of each one is stored.
pub const MAX_DENIALS: u64 = 1_000;

/// The longest window: 3,660 days, so that sums of times stay far below 2^53 microseconds. Lua's numbers are exact
/// there.
pub const MAX_PER: Duration = Duration::from_secs(3_660 * 86_400);

/// The longest deadline of a decision: an hour, so that no sum of times overflows the clock.
pub const MAX_DEADLINE: Duration = Duration::from_secs(3_600);

/// The greatest count of an exact sliding window, and so the greatest cost that one can admit: 2^31. The log of a tally
/// stores sums of costs in 32 bits.
pub const MAX_SLIDING_COUNT: u64 = 1 << 31;

/// A log with this many counted entries is dense: from then on, calls share an entry if they are closer together than
/// the longest window divided by this number. That keeps every log below twice this length.
pub const MAX_LOG_ENTRIES: usize = 65_536;

/// The most later entries of a log with which a call can still be refunded from its sliding windows: a refund rewrites
/// them.
pub const MAX_REFUND_DISTANCE: usize = 1_024;

/// The longest time by which a clock may go back and count as standing still until it has caught up. A clock that goes
/// back further was set back, and what is later than its time is forgotten. NTP slews a clock that is wrong by less, so
/// the clocks of two nodes differ by less.
pub const MAX_STANDSTILL: Duration = Duration::from_millis(128);

/// The greatest count of a sliding counter: 2^26, so that the product of two counts is exact.
pub const MAX_COUNTER_COUNT: u64 = 1 << 26;

/// The greatest number of concurrent calls that a rule can allow: each call is stored.
pub const MAX_CONCURRENCY: u64 = 100_000;

/// The shortest lease of a concurrent call: a second, because it is renewed over a network after half of it.
pub const MIN_LEASE: Duration = Duration::from_secs(1);

/// The longest lease of a concurrent call: an hour. A process that has died keeps its leases that long at most.
pub const MAX_LEASE: Duration = Duration::from_secs(3_600);

/// The longest time for which calls are taken ahead: ten seconds.
pub const MAX_PREFETCH: Duration = Duration::from_secs(10);

/// The shortest time for which calls are taken ahead: 10 milliseconds, of which the last two are not used.
pub const MIN_PREFETCH: Duration = Duration::from_millis(10);

/// The smallest count of a rule whose calls are taken ahead: of a smaller count, a process takes too few calls at once.
pub const MIN_PREFETCH_COUNT: u64 = 100;

/// The greatest integer that is exact in Lua, and so in every tally: 2^53 − 1.
pub const MAX_EXACT: u64 = (1 << 53) - 1;
