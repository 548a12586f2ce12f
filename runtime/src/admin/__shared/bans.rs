//! Bans, as operators make them.

use std::time::Duration;

use tallygate_rules::{MAX_PER, format_duration};

use super::OpenPolicy;
use crate::error::Error;

impl OpenPolicy<'_> {
    /// Returns how long the policy bans.
    ///
    /// # Errors
    ///
    /// It has no ban.
    pub fn ban_duration(&self) -> Result<Duration, Error> {
        let none = || {
            let name = self.described.name();
            Error::new(format!(
                "policy `{name}` has no ban, so nobody can be banned under it; add `ban(…)` to the policy"
            ))
        };
        self.policy.ban().map(|ban| ban.duration()).ok_or_else(none)
    }
}

/// Checks for how long to ban, which that argument gives. `end` is what ends a ban.
///
/// # Errors
///
/// It is zero, or too long.
pub fn check_ban_duration(duration: Duration, argument: &str, end: &str) -> Result<(), String> {
    if duration.is_zero() {
        return Err(format!("`{argument}` must be longer than zero; to end a ban, use `{end}`"));
    }
    if duration > MAX_PER {
        return Err(format!("`{argument}` must be {} at most", format_duration(MAX_PER)));
    }
    Ok(())
}
