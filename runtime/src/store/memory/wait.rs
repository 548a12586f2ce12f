//! How long a rule makes a call wait.

use std::time::Duration;

/// The microseconds until a rule would admit a call: none of them, some, or never enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wait(u64);

impl Wait {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NEVER: Self = Self(u64::MAX);

    pub(super) fn us(us: u64) -> Self {
        Self(us)
    }

    pub(super) fn until(then_us: u64, now_us: u64) -> Self {
        Self(then_us.saturating_sub(now_us))
    }

    pub(super) fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The wait as callers see it: `None` is never.
    pub(super) fn retry_after(self) -> Option<Duration> {
        (self != Self::NEVER).then(|| Duration::from_micros(self.0))
    }
}
