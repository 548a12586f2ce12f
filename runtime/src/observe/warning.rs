//! What is reported of a subject that has come near a limit.

use tracing::debug;

use super::TARGET;
#[cfg(feature = "metrics")]
use super::metrics::count_warning;

/// Reports that a subject has come near the limit of the rule at this position.
pub(crate) fn warned(policy: &str, rule: usize) {
    debug!(target: TARGET, policy, rule, "near a limit");
    #[cfg(feature = "metrics")]
    count_warning(policy, rule);
}
