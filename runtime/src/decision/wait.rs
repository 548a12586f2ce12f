//! How long a call has to wait.

use std::time::Duration;

#[cfg(feature = "web")]
use crate::micros;

/// The microseconds until a call would be admitted: none of them, some, or never enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wait(u64);

impl Wait {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const NEVER: Self = Self(u64::MAX);

    pub(crate) fn us(us: u64) -> Self {
        Self(us)
    }

    #[cfg(feature = "web")]
    pub(crate) fn of(wait: Duration) -> Self {
        Self(micros::from_duration(wait))
    }

    #[inline]
    pub(crate) fn until(then_us: u64, now_us: u64) -> Self {
        Self(then_us.saturating_sub(now_us))
    }

    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// When it is over, if it begins now.
    #[inline]
    pub(crate) fn ends_us(self, now_us: u64) -> u64 {
        now_us.saturating_add(self.0)
    }

    /// What is left of it after so many microseconds.
    pub(crate) fn after(self, us: u64) -> Self {
        if self == Self::NEVER { self } else { Self(self.0.saturating_sub(us)) }
    }

    /// The wait as callers see it: `None` is never.
    pub(crate) fn retry_after(self) -> Option<Duration> {
        (self != Self::NEVER).then(|| Duration::from_micros(self.0))
    }
}
