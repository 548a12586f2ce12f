//! The numbers and letters of the contract between the scripts and their caller.
//!
//! They are written here and nowhere else: `build.rs` puts them into the scripts.

/// The version of the contract, sent as the first argument.
pub const PROTOCOL: &str = "5";

/// The kind of a sliding window; its length follows.
pub const SLIDING_WINDOW: u8 = b'w';

/// The kind of a sliding window that counts calls, and whose denial is reported before all others; its length follows.
pub const DUPLICATE: u8 = b'd';

/// The kind of a sliding counter; the length of a slot follows.
pub const SLIDING_COUNTER: u8 = b'c';

/// The kind of a fixed window; its length follows.
pub const FIXED_WINDOW: u8 = b'f';

/// The kind of a rule that counts between ticks; the number of ticks and the ticks follow.
pub const CRON: u8 = b'k';

/// The kind of a token bucket; its span, capacity, initial tokens and `reset_after` follow.
pub const TOKEN_BUCKET: u8 = b'b';

/// What is asked: to report on every rule. See [`PEEK`].
pub const REPORT: u8 = 1;

/// What is asked: to charge nothing. The sum of this and [`REPORT`] asks both.
pub const PEEK: u8 = 2;

/// How many integers answer one request: the server's time in microseconds since 1970, a code, and the microseconds to
/// wait.
pub const REPLY_FIELDS: usize = 3;

/// How many integers report on one rule: what remains, and the microseconds until the rule is whole again.
pub const REPORT_FIELDS: usize = 2;

/// The code of a call that is admitted. A code from 0 on is the rule that denies the call, counted over all subjects of the
/// request.
pub const ADMITTED: i64 = -1;

/// The code of a request or a refund whose ticks are not around the server's time. Nothing was decided.
pub const STALE_TICKS: i64 = -2;

/// The code of a request with a tally that cannot be read. Nothing was decided.
pub const UNREADABLE: i64 = -3;

/// The code of a call with a subject that is banned.
pub const BANNED: i64 = -4;

/// The wait of a call that can never be admitted.
pub const NEVER: i64 = -1;

/// How many bytes an integer takes, in a request, a tally and a reply. The log of a tally has one for each admitted unit
/// of weight.
pub const INTEGER_BYTES: usize = 7;

/// How many bytes of a tally a rule takes that is no sliding window.
pub const CELL_BYTES: usize = 3 * INTEGER_BYTES;

/// How many bytes of a tally a ban takes, beside one integer for each denial that leads to it.
pub const BAN_BYTES: usize = 3 * INTEGER_BYTES;
