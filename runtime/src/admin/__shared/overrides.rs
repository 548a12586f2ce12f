//! Overrides, as operators change them.

use std::time::Duration;

use crate::error::Error;
use crate::limiter::{Limiter, OverrideBuilder};
use crate::subject::Subject;

/// Starts an override by the policy, the label and the subject that lists show, whatever has become of them: to clear it.
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
    let builder = label.into_iter().fold(limiter.override_policy(policy), OverrideBuilder::on);
    Ok(match subject {
        Some(text) => builder.subject(&Subject::from_rendered(text)?),
        None => builder,
    })
}

/// Adds rules in the words of people, and how long they hold, which `argument` gives unless the rules do.
///
/// # Errors
///
/// Both give it.
pub fn rules_for<'l>(
    builder: OverrideBuilder<'l>,
    rules: &str,
    holds: Option<Duration>,
    argument: &str,
) -> Result<OverrideBuilder<'l>, String> {
    let new = builder.text(rules);
    match holds {
        Some(_) if new.expires_in.is_some() => {
            Err(format!("the rules and `{argument}` both give how long they hold; leave one of them out"))
        }
        _ => Ok(holds.into_iter().fold(new, OverrideBuilder::expires_in)),
    }
}
