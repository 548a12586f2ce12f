//! The events of the log.

use tracing::{debug, info, warn};

use super::TARGET;
use crate::error::BackendError;

/// Reports a decision that the backend did not make.
pub(crate) fn undecided(policy: &str, error: &BackendError) {
    debug!(target: TARGET, policy, kind = %"unavailable", %error, "no decision");
}

/// Reports a denial. A client chooses how often this happens, so the level stays low.
pub(crate) fn denied(policy: &str, kind: &str, rule: Option<usize>) {
    debug!(target: TARGET, policy, rule, %kind, "denied");
}

/// Reports the denial of a call that runs all the same.
pub(crate) fn denied_in_shadow(policy: &str, kind: &str, rule: Option<usize>) {
    debug!(target: TARGET, policy, rule, %kind, "denied in shadow: the call goes on");
}

/// Reports that the hits of a call stay counted, although they were to be refunded.
pub(crate) fn not_refunded(policy: &str, error: &BackendError) {
    debug!(target: TARGET, policy, %error, "a permit could not be refunded and stays counted");
}

/// Reports that the rules of a policy, or of one of its subjects, were overridden, or that an override was cleared.
pub(crate) fn overridden(policy: &str) {
    info!(target: TARGET, policy, "rules were overridden, or an override was cleared");
}

/// Reports an override that has expired.
pub(crate) fn override_expired(policy: &str) {
    info!(target: TARGET, policy, "an override has expired");
}

/// Reports an override of a rule that a policy of this process does not have.
pub(crate) fn override_without_rule(policy: &str, rule: &str) {
    warn!(target: TARGET, policy, rule, "an override is for a rule that the policy does not have; this part is ignored");
}

/// Reports an override that cannot be read.
#[cfg(feature = "redis")]
pub(crate) fn override_ignored(policy: &str, mistake: &str) {
    warn!(target: TARGET, policy, mistake, "an override cannot be read and is ignored; set or clear it again");
}

/// Reports that the overrides cannot be read.
#[cfg(feature = "redis")]
pub(crate) fn overrides_unread(error: &BackendError) {
    warn!(target: TARGET, %error, "overrides cannot be read; the last known ones stay in force");
}

/// Reports that the overrides are too many to be read.
#[cfg(feature = "redis")]
pub(crate) fn too_many_overrides(most: usize) {
    warn!(target: TARGET, most, "there are too many overrides to read; the last known ones stay in force");
}
