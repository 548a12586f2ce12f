//! The script that decides [Tallygate](https://docs.rs/tallygate) policies inside Redis, and its wire contract.
//!
//! The script's own header says what its keys, its arguments and its reply are. The constants below are the caller's
//! half of that contract. Most users want the `tallygate` crate, which speaks it for them.

/// The text of `decide.lua`, the one script that decides calls.
pub const DECIDE: &str = include_str!("decide.lua");

/// The text of `refund.lua`, which takes the hits of one call back.
pub const REFUND: &str = include_str!("refund.lua");

/// The text of `ban.lua`, which bans a subject or ends its ban.
pub const BAN: &str = include_str!("ban.lua");

/// The version of the contract, sent as the first argument.
pub const PROTOCOL: &str = "4";

/// Announces a sliding window: window follows.
pub const SLIDING_WINDOW: u8 = b'w';

/// Announces a sliding window of calls whose denial is named before all others: window follows.
pub const DUPLICATE: u8 = b'd';

/// Announces a sliding counter: slot follows.
pub const SLIDING_COUNTER: u8 = b'c';

/// Announces a fixed window: window follows.
pub const FIXED_WINDOW: u8 = b'f';

/// Announces a rule that counts between ticks: the number of ticks and the ticks follow.
pub const CRON: u8 = b'k';

/// Announces a token bucket: per, capacity, initial and `reset_after` follow.
pub const TOKEN_BUCKET: u8 = b'b';

/// How many integers answer one request: the server's time in microseconds since 1970, the rule to name, and the
/// microseconds to wait.
pub const REPLY_FIELDS: usize = 3;

/// How many integers report on one rule: what remains, and the microseconds until the rule is whole again.
pub const REPORT_FIELDS: usize = 2;

/// In the place of the rule to name: the request is admitted. Rules are counted from 1.
pub const ADMITTED: i64 = 0;

/// In the place of the rule to name, or of what was given back: the ticks that were sent are not around the server's time.
pub const OFF_THE_CLOCK: i64 = -1;

/// In the place of the rule to name: a tally cannot be read. Nothing was charged.
pub const UNREADABLE: i64 = -2;

/// In the place of the rule to name: a subject is banned.
pub const BANNED: i64 = -3;

/// In the place of what is asked: to report on every rule, and not to charge; their sum asks both.
pub const REPORT: u8 = 1;

/// See [`REPORT`].
pub const PEEK: u8 = 2;

/// In the place of the microseconds to wait: the call can never fit.
pub const NEVER: i64 = -1;

/// How many bytes one integer takes, in a tally and in a reply. A tally's log has one for each admitted unit of weight.
pub const INTEGER_BYTES: usize = 7;

/// How many bytes of a tally a rule takes that is not a sliding window.
pub const CELL_BYTES: usize = 3 * INTEGER_BYTES;

/// How many bytes of a tally a ban takes besides the slots of its denials, of one integer each.
pub const BAN_BYTES: usize = 3 * INTEGER_BYTES;

/// Returns one of the scripts with a clock of the caller's: the last argument is the time, in microseconds since 1970.
///
/// It differs from the original in the lines that read the clock and in nothing else. For tests that compare decisions
/// with a model at chosen instants.
#[cfg(feature = "__clock")]
#[must_use]
pub fn at_callers_time(script: &str) -> String {
    script.replacen(CLOCK, "local now = table.remove(ARGV) + 0", 1)
}

/// The lines of the script that read the clock.
#[cfg(feature = "__clock")]
const CLOCK: &str = "local clock = call('TIME')\nlocal now = clock[1] * 1000000 + clock[2]";

#[cfg(test)]
mod tests {
    #[cfg(feature = "__clock")]
    #[test]
    fn the_script_with_the_callers_clock_differs_in_the_clock_alone() {
        for script in [super::DECIDE, super::REFUND, super::BAN] {
            let patched = super::at_callers_time(script);
            let (before, after) = script.split_once(super::CLOCK).unwrap();
            assert!(patched.starts_with(before) && patched.ends_with(after) && !patched.contains("'TIME'"));
        }
    }

    use super::*;

    #[test]
    fn the_constants_and_the_script_agree() {
        for script in [DECIDE, REFUND, BAN] {
            assert!(script.contains(&format!("if ARGV[1] ~= '{PROTOCOL}' then")));
        }
        assert!(DECIDE.contains(&format!("local INTEGER = {INTEGER_BYTES}\n")));
        assert!(DECIDE.contains(&format!(
            "local ADMITTED, OFF_THE_CLOCK, UNREADABLE, BANNED = {ADMITTED}, {OFF_THE_CLOCK}, {UNREADABLE}, {BANNED}\n"
        )));
        assert!(REFUND.contains(&format!("local OFF_THE_CLOCK = {OFF_THE_CLOCK}\n")));
        assert!(DECIDE.contains(&format!("wait == never and {NEVER} or wait")));
        for kind in [SLIDING_WINDOW, DUPLICATE, SLIDING_COUNTER, FIXED_WINDOW, CRON, TOKEN_BUCKET] {
            let kind = char::from(kind);
            assert!(DECIDE.contains(&format!("\n                 {kind} ")), "{kind} is not in the header");
            assert!(DECIDE.contains(&format!("kind == '{kind}'")), "{kind} is not in the script");
        }
    }
}
