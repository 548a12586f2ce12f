//! The script that decides [Tallygate](https://docs.rs/tallygate) policies inside Redis, and its wire contract.
//!
//! The script's own header says what its keys, its arguments and its reply are. The constants below are the caller's
//! half of that contract. Most users want the `tallygate` crate, which speaks it for them.

/// The text of the one script, `decide.lua`.
pub const DECIDE: &str = include_str!("decide.lua");

/// The version of the contract, sent as the first argument.
pub const PROTOCOL: &str = "1";

/// Announces a sliding window: count and window in microseconds follow.
pub const SLIDING_WINDOW: &str = "w";

/// Announces a sliding window of calls whose denial is named before all others: count and window follow.
pub const DUPLICATE: &str = "d";

/// How many integers precede the answers in a reply: the server's time in microseconds.
pub const REPLY_HEAD: usize = 1;

/// How many integers answer one request: the rule to name and the microseconds to wait.
pub const REPLY_FIELDS: usize = 2;

/// In the place of the rule to name: the request is admitted. Rules are counted from 1.
pub const ADMITTED: i64 = 0;

/// In the place of the microseconds to wait: the call can never fit.
pub const NEVER: i64 = -1;

/// How many bytes of a tally one admitted unit of weight takes.
pub const HIT_BYTES: usize = 7;
