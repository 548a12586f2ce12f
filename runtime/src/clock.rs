//! The clock of the tallies in this process.

use std::time::{SystemTime, UNIX_EPOCH};

use tallygate_rules::MAX_PER;
use tokio::time::Instant;

use crate::micros;

/// A clock that never goes back: tokio's, so that a test which pauses time can advance it past a window.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "__clock"), allow(unreachable_pub, reason = "public for this workspace's tests"))]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Tokio {
        started: Instant,
        started_us: u64,
    },
    #[cfg(feature = "__clock")]
    Manual(std::sync::Arc<std::sync::atomic::AtomicU64>),
}

impl Clock {
    pub(crate) fn tokio() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // No earlier than the longest window, so that no window reaches before time zero.
        Self(Source::Tokio { started: Instant::now(), started_us: micros::from_duration(unix.max(MAX_PER)) })
    }

    /// Returns a clock that differs from the right time by `ahead_us`, while the server's clock is right.
    #[cfg(feature = "__clock")]
    #[must_use]
    pub fn skewed(ahead_us: i64) -> Self {
        match Self::tokio().0 {
            Source::Tokio { started, started_us } => {
                Self(Source::Tokio { started, started_us: started_us.saturating_add_signed(ahead_us) })
            }
            manual @ Source::Manual(_) => Self(manual),
        }
    }

    /// Returns the microseconds since 1970.
    #[inline]
    pub(crate) fn now_us(&self) -> u64 {
        match &self.0 {
            Source::Tokio { started, started_us } => {
                started_us + micros::from_duration(Instant::now().saturating_duration_since(*started))
            }
            #[cfg(feature = "__clock")]
            Source::Manual(us) => us.load(std::sync::atomic::Ordering::Relaxed),
        }
    }

    /// Returns the time that Redis is to decide by instead of its own.
    #[cfg(all(feature = "__clock", feature = "redis"))]
    pub(crate) fn manual_us(&self) -> Option<u64> {
        matches!(self.0, Source::Manual(_)).then(|| self.now_us())
    }
}

/// A clock that is set by hand, for tests that compare decisions with a model at chosen instants.
#[cfg(feature = "__clock")]
impl From<std::sync::Arc<std::sync::atomic::AtomicU64>> for Clock {
    fn from(us: std::sync::Arc<std::sync::atomic::AtomicU64>) -> Self {
        Self(Source::Manual(us))
    }
}
