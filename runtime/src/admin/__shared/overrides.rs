//! Overrides, as operators change them.

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
