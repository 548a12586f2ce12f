//! How long a call has to wait.

use std::fmt;
use std::time::Duration;

use crate::micros;

/// The microseconds until a call would be admitted: zero, some, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wait(u64);

impl Wait {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const NEVER: Self = Self(u64::MAX);

    pub(crate) fn us(us: u64) -> Self {
        Self(us)
    }

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

    /// Returns the time at which the wait ends, if it begins now.
    #[inline]
    pub(crate) fn ends_us(self, now_us: u64) -> u64 {
        now_us.saturating_add(self.0)
    }

    /// Returns the rest of the wait after `us` microseconds.
    pub(crate) fn after(self, us: u64) -> Self {
        if self == Self::NEVER { self } else { Self(self.0.saturating_sub(us)) }
    }

    /// Returns the wait as callers get it; `None` means never.
    pub(crate) fn retry_after(self) -> Option<Duration> {
        (self != Self::NEVER).then(|| Duration::from_micros(self.0))
    }
}

/// A wait in at most two units, rounded up, because a caller that comes back early is denied again.
pub(crate) struct RoundedUp(pub(crate) Duration);

impl fmt::Display for RoundedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs() + u64::from(self.0.subsec_nanos() > 0);
        let (great, small, size, within) = match seconds {
            0..60 => return write!(f, "{seconds}s"),
            60..3_600 => ("m", "s", 60, 1),
            3_600..86_400 => ("h", "m", 3_600, 60),
            _ => ("d", "h", 86_400, 3_600),
        };
        let total = seconds.div_ceil(within);
        let (whole, rest) = (total / (size / within), total % (size / within));
        match rest {
            0 => write!(f, "{whole}{great}"),
            _ => write!(f, "{whole}{great} {rest}{small}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_rounded_up_to_what_it_shows() {
        let shown = |seconds: f64| RoundedUp(Duration::from_secs_f64(seconds)).to_string();
        assert_eq!(shown(0.001), "1s");
        assert_eq!(shown(59.5), "1m");
        assert_eq!(shown(61.0), "1m 1s");
        assert_eq!(shown(3_599.1), "1h");
        assert_eq!(shown(3_601.0), "1h 1m");
        assert_eq!(shown(86_399.0), "24h");
        assert_eq!(shown(90_001.0), "1d 2h");
    }
}
