//! The numbers and letters of the contract between the scripts and their caller.
//!
//! They are written only here: `build.rs` puts them into the scripts.

/// The version of the contract, sent as the first argument.
pub const PROTOCOL: &str = "7";

/// The kind of a sliding window; its length follows.
pub const SLIDING_WINDOW: u8 = b'w';

/// The kind of a sliding window that counts calls, and whose denial is reported before all others; its length follows.
pub const DUPLICATE: u8 = b'd';

/// The kind of a sliding counter; the length of a slot follows.
pub const SLIDING_COUNTER: u8 = b'c';

/// The kind of a fixed window; its length follows.
pub const FIXED_WINDOW: u8 = b'f';

/// The kind of a cron rule, which counts between ticks; the number of ticks and the ticks follow.
pub const CRON: u8 = b'k';

/// The kind of a token bucket; its span, capacity, initial tokens and `reset_after` follow.
pub const TOKEN_BUCKET: u8 = b'b';

/// The kind of a concurrency limit, the only rule of its subject; the length of a lease and its name follow.
pub const CONCURRENCY: u8 = b'l';

/// Asks for a report on every rule. It can be added to the other questions: see [`PEEK`].
pub const REPORT: u8 = 1;

/// Asks to charge nothing. A request asks several of these questions by the sum of their numbers.
pub const PEEK: u8 = 2;

/// Asks about a part of a call, whose answer is combined with those of the other parts. The answer says when the rules
/// lapse.
pub const PART: u8 = 4;

/// Asks to charge nothing, and to count a denial towards a ban, because another part of the call is denied.
pub const DENIAL: u8 = 8;

/// Asks not to count a denial towards a ban, because the call may be decided again.
pub const PROVISIONAL: u8 = 16;

/// Each subject has a cost of its own.
pub const UNITS: u8 = 32;

/// The cost of a subject whose unit is charged afterwards. It is greater than any cost.
pub const LATER: u64 = 1 << 54;

/// Charges the call even beyond the limits.
pub const LATE: u8 = 64;

/// How many integers answer one request: the server's time in microseconds since 1970, a code, and the wait in
/// microseconds.
pub const REPLY_FIELDS: usize = 3;

/// How many integers report on one rule: what remains, the microseconds until the rule is unused again, and those until a cost
/// of 1 fits.
pub const REPORT_FIELDS: usize = 3;

/// The code of a call that is admitted. A code from 0 on is the rule that denies the call, counted over all subjects.
pub const ADMITTED: i64 = -1;

/// The code of a request or a refund whose ticks are not around the server's time, or whose tallies have more future
/// entries than one call has time to forget. Nothing was decided: the caller can ask again.
pub const ASK_AGAIN: i64 = -2;

/// The code of a request with a tally that cannot be read. Nothing was decided.
pub const UNREADABLE: i64 = -3;

/// The code of a call with a subject that is banned.
pub const BANNED: i64 = -4;

/// Begins the answer to requests of which at least one is paused: see `paused.lua`. No answer begins with it otherwise,
/// because the time is not negative.
pub const PAUSED: i64 = -5;

/// How a pause stands that is over, while one call at a time is tried and the place is free. While a probe has the place, it is
/// less by as many microseconds as are left of that.
pub const PROBE: i64 = -2;

/// How many bytes of a pause say when it was set, when it ends, and until when a probe has the place. The name of that probe
/// follows, in [`LEASE_NAME_BYTES`].
pub const PAUSE_BYTES: usize = 3 * INTEGER_BYTES;

/// How many bytes of a pause say who has set it, at most, behind the name of the probe.
pub const SOURCE_BYTES: usize = 64;

/// The wait of a call that can never be admitted.
pub const NEVER: i64 = -1;

/// How many bytes an integer takes, in a request, a tally and a reply.
pub const INTEGER_BYTES: usize = 7;

/// How many bytes of a tally the cell of a rule takes. A sliding window has none.
pub const CELL_BYTES: usize = 3 * INTEGER_BYTES;

/// How many bytes of a tally a ban takes, without one integer for each denial that leads to it.
pub const BAN_BYTES: usize = 3 * INTEGER_BYTES;

/// How many bytes of a tally an admitted call takes in the log of the sliding windows: its time and a sum of 4 bytes.
pub const ENTRY_BYTES: usize = INTEGER_BYTES + 4;

/// When this many entries of a log still count, calls that are close to each other share an entry.
pub const LOG_ENTRIES: usize = 65_536;

/// The most entries of a log: a longer value is no tally. Twice [`LOG_ENTRIES`] may count, and entries that no longer
/// count are dropped long before.
pub const LONGEST_LOG: usize = 8 * LOG_ENTRIES;

/// A refund gives nothing back if more than this number of entries are later than the call.
pub const REFUND_DISTANCE: usize = 1_024;

/// The greatest weight in a slot of a sliding counter.
pub const COUNTER_COUNT: u64 = 1 << 26;

/// Where the longest window is no longer than this number of microseconds, a log is kept for one more such window after
/// it stops counting, and else for an eighth of it. The extra time saves renewing the TTL.
pub const LONG_SLACK: u64 = 3_600_000_000;

/// If the clock goes back by at most this number of microseconds, the time stands still until the clock has caught up;
/// if by more, the clock was set back. NTP slews smaller errors, so the clocks of two nodes differ by less. On some
/// servers the clock goes back by up to a millisecond.
pub const STANDSTILL: u64 = 128_000;

/// A log is cleaned up only when the number of its entries is a multiple of this number.
pub const CLEAN_UP_ENTRIES: usize = 32;

/// How many entries are read at once from the end of a log. Most logs have no more, and then nothing else is read.
pub const END_ENTRIES: usize = 34;

/// The bytes of `END_ENTRIES` entries.
pub const END_BYTES: usize = END_ENTRIES * ENTRY_BYTES;

/// The code of a call that `windows.lua` admits. A code up to [`MAX_PLAIN_RULES`] is the rule that denies the call.
pub const PLAIN_ADMITTED: u8 = 255;

/// The code of a request with a tally that `windows.lua` cannot read. Nothing was decided.
pub const PLAIN_UNREADABLE: u8 = 254;

/// The code of a request whose tally has more future entries than `windows.lua` has time to forget. Nothing was
/// decided: the caller can ask again.
pub const PLAIN_ASK_AGAIN: u8 = 253;

/// The most rules of a request that `windows.lua` decides: Lua has no room for the locals of many more.
pub const MAX_PLAIN_RULES: usize = 32;

/// The most subjects of a request that `windows_together.lua` decides: its text grows with them.
pub const MAX_TOGETHER_SUBJECTS: usize = 4;

/// Returns the most rules on each of these subjects that `windows_together.lua` decides: Lua has room for 200 locals. Each
/// subject takes 13 of them, and each rule of a subject 4.
#[must_use]
pub const fn max_together_rules(subjects: usize) -> usize {
    match 116_usize.checked_div(subjects) {
        Some(locals) if subjects <= MAX_TOGETHER_SUBJECTS => locals.saturating_sub(13) / 4,
        _ => 0,
    }
}

/// How many bytes the TTL of a tally takes in a request of several subjects.
pub const TTL_BYTES: usize = 16;

/// The bytes of the name of a lease. Each call has a name of its own.
pub const LEASE_NAME_BYTES: usize = 16;

/// No lease ends later than this number of microseconds from now, unless the clock was set back.
pub const LONGEST_LEASE: u64 = 3_600_000_000 + STANDSTILL;

/// How many ended leases one call forgets at most. A call takes one lease, so ended leases do not pile up.
pub const LEASES_FORGOTTEN: usize = 128;

/// How many policies of the registry one call of `register.lua` checks, to remove those that nobody registers any more.
pub const POLICIES_LOOKED_AT: usize = 64;
