//! Times to wait in whole seconds, as responses have them.

use std::time::Duration;

/// Returns the seconds, rounded up: a client that comes back early is denied again.
pub(crate) fn rounded_up(duration: Duration) -> u64 {
    duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0))
}
