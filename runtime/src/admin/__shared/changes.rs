//! Bans, pauses and overrides, as operators make them.

use std::time::Duration;

use tallygate_rules::{MAX_PER, format_duration};

use super::OpenPolicy;
use crate::admin::RegisteredPolicy;
use crate::error::Error;
use crate::limiter::{Check, Limiter, Override, OverrideBuilder};
use crate::subject::Subject;

impl OpenPolicy<'_> {
    /// Returns how long the policy bans.
    ///
    /// # Errors
    ///
    /// The policy has no ban.
    pub fn ban_duration(&self) -> Result<Duration, Error> {
        let none = || {
            let name = self.described.name();
            Error::new(format!(
                "policy `{name}` has no ban, so nobody can be banned under it; add `ban(…)` to the policy"
            ))
        };
        self.policy.ban().map(|ban| ban.duration()).ok_or_else(none)
    }

    /// Returns how long a subject of the policy may be paused.
    ///
    /// # Errors
    ///
    /// Its subjects cannot be paused.
    pub fn longest_pause(&self) -> Result<Duration, Error> {
        let none = || {
            let name = self.described.name();
            Error::new(format!(
                "subjects of policy `{name}` cannot be paused; add `pause = …` to its attribute, or `.pausable()` where it \
                 is built"
            ))
        };
        self.described.longest_pause().ok_or_else(none)
    }
}

/// Checks the duration of a ban. The error names the `argument` that gives it, and the `end` that ends a ban.
///
/// # Errors
///
/// The duration is zero, or too long.
pub fn check_ban_duration(duration: Duration, argument: &str, end: &str) -> Result<(), String> {
    if duration.is_zero() {
        return Err(format!("`{argument}` must be longer than zero; to end a ban, use `{end}`"));
    }
    if duration > MAX_PER {
        return Err(format!("`{argument}` must be {} at most", format_duration(MAX_PER)));
    }
    Ok(())
}

/// Checks the length of a pause. The error names the `argument` that gives it, and the `end` that ends a pause.
///
/// # Errors
///
/// The length is zero, or longer than the longest pause of the policy.
pub fn check_pause_length(length: Duration, longest: Duration, argument: &str, end: &str) -> Result<(), String> {
    if length.is_zero() {
        return Err(format!("`{argument}` must be longer than zero; to end a pause, use `{end}`"));
    }
    if length > longest {
        let longest = format_duration(longest);
        return Err(format!("`{argument}` must be {longest} at most, which is the longest pause of the policy"));
    }
    Ok(())
}

/// Returns for how long a subject is paused that was paused for `length` just now: for longer, if a longer pause holds.
/// If the backend does not answer, it is paused all the same, for `length` as far as is known.
pub async fn held_pause(check: Check<'_>, length: Duration) -> Duration {
    let status = check.pause_status().await.ok().flatten();
    status.map_or(length, |status| status.left().max(length))
}

/// Starts an override by the policy, label and subject that lists show, to clear it even if these no longer exist.
///
/// # Errors
///
/// The text is no subject as it stands in keys.
pub fn override_as_listed<'l>(
    limiter: &'l Limiter,
    policy: &str,
    label: Option<&str>,
    subject: Option<&str>,
) -> Result<OverrideBuilder<'l>, Error> {
    let builder = label.into_iter().fold(limiter.override_policy(policy), OverrideBuilder::label);
    Ok(match subject {
        Some(text) => builder.subject(&Subject::from_rendered(text)?),
        None => builder,
    })
}

/// Returns whether a policy is in shadow: as an override of the whole policy says, or else the list. `overrides` are
/// those in force. `None` if it is not known.
#[must_use]
pub fn shadow(described: &RegisteredPolicy, overrides: &[Override]) -> Option<bool> {
    let is_whole =
        |one: &&Override| one.policy() == described.name() && one.label().is_none() && one.subject().is_none();
    overrides.iter().find(is_whole).and_then(Override::shadow).or(described.shadow())
}

/// Adds rules in text form, if there are any, and how long they hold: as they say, or as `holds` says.
///
/// # Errors
///
/// The rules and `holds`, which `argument` gives, both say how long the rules hold.
pub fn rules_for<'l>(
    builder: OverrideBuilder<'l>,
    rules: Option<&str>,
    holds: Option<Duration>,
    argument: &str,
) -> Result<OverrideBuilder<'l>, String> {
    let new = match rules {
        Some(rules) => builder.text(rules),
        None => builder,
    };
    match holds {
        Some(_) if new.expires_in.is_some() => {
            Err(format!("the rules and `{argument}` both give how long they hold; leave one of them out"))
        }
        _ => Ok(holds.into_iter().fold(new, OverrideBuilder::expires_in)),
    }
}
