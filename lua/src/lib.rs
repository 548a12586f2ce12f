//! The scripts that decide [Tallygate](https://docs.rs/tallygate) policies inside Redis, and the caller's half of their
//! contract. Most users want the `tallygate` crate, which calls them.
//!
//! A script begins with a header that says what its keys, its arguments and its reply are. The texts here are complete:
//! `build.rs` puts them together from the parts in `parts/` and the constants below.

mod contract;
#[cfg(test)]
mod expand;
mod windows;

pub use self::contract::*;
pub use self::windows::{windows, windows_alone, windows_together};

/// The text of `decide.lua`, which decides any calls. [`windows`] decides the common ones.
pub const DECIDE: &str = include_str!(concat!(env!("OUT_DIR"), "/decide.lua"));

/// The text of `refund.lua`, which refunds or settles one call.
pub const REFUND: &str = include_str!(concat!(env!("OUT_DIR"), "/refund.lua"));

/// The text of `lease.lua`, which gives the leases of one call back, or renews them.
pub const LEASE: &str = include_str!(concat!(env!("OUT_DIR"), "/lease.lua"));

/// The text of `ban.lua`, which bans a subject or ends its ban.
pub const BAN: &str = include_str!(concat!(env!("OUT_DIR"), "/ban.lua"));

/// The text of `pause.lua`, which pauses a subject.
pub const PAUSE: &str = include_str!(concat!(env!("OUT_DIR"), "/pause.lua"));

/// The text of `probe.lua`, by which one call at a time is tried after a pause.
pub const PROBE_PLACE: &str = include_str!(concat!(env!("OUT_DIR"), "/probe.lua"));

/// The text of `override.lua`, which changes the overrides of a prefix. It shares no part with the other scripts.
pub const OVERRIDE: &str = include_str!("../override.lua");

/// The text of `register.lua`, which writes descriptions of policies into the registry of a prefix.
pub const REGISTER: &str = include_str!(concat!(env!("OUT_DIR"), "/register.lua"));

/// The text of `denied.lua`, which adds denials of subjects to those that other processes have published.
pub const DENIED: &str = include_str!("../denied.lua");

/// Returns a script that decides requests, for subjects that may be paused: `paused.lua` stands behind its clock.
#[must_use]
pub fn pausable(script: &str) -> String {
    behind_clock(script, include_str!(concat!(env!("OUT_DIR"), "/paused.lua")))
}

/// Returns [`windows_alone`] for a subject that may be paused.
#[must_use]
pub fn pausable_alone(rules: usize) -> String {
    behind_clock(&windows_alone(rules), include_str!(concat!(env!("OUT_DIR"), "/paused_alone.lua")))
}

fn behind_clock(script: &str, addition: &str) -> String {
    let code = addition.split_once("]]").map_or(addition, |(_header, code)| code.trim_start());
    script.replacen(CLOCK, &format!("{CLOCK}{code}"), 1)
}

/// Returns one of the scripts with the caller's clock: the last argument is the time, in microseconds since 1970.
///
/// It differs from the original only in the lines that read the clock. Tests use it to compare decisions with a model
/// at chosen instants.
#[cfg(feature = "__clock")]
#[must_use]
pub fn at_callers_time(script: &str) -> String {
    script.replacen(CLOCK, "local now = table.remove(ARGV) + 0\n", 1)
}

const CLOCK: &str = include_str!("../parts/clock.lua");

#[cfg(all(test, feature = "__clock"))]
mod tests {
    #[test]
    fn the_script_with_the_callers_clock_differs_in_the_clock_alone() {
        let windows = [super::windows(2), super::windows_alone(2), super::windows_together(2, 2)];
        let others =
            [super::DECIDE, super::REFUND, super::LEASE, super::BAN, super::PAUSE, super::PROBE_PLACE, super::REGISTER];
        let pausable = [super::pausable(super::DECIDE), super::pausable(&windows[2]), super::pausable_alone(2)];
        let texts = windows.iter().chain(&pausable).map(String::as_str);
        for script in others.into_iter().chain(texts) {
            let patched = super::at_callers_time(script);
            let (before, after) = script.split_once(super::CLOCK).unwrap();
            assert!(patched.starts_with(before) && patched.ends_with(after) && !patched.contains("'TIME'"));
        }
    }
}
