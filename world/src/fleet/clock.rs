//! The clock of a process: how fast it runs, and how far it is off.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The time since 1970 at which every world begins.
const BEGINNING_US: u64 = 1_795_285_789_000_000;

const MILLION: i128 = 1_000_000;

/// Where the monotonic clocks of all processes begin. Only differences of what they show matter.
static BASE: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// How many microseconds it gains in a second.
    pub gain: i32,
    /// How many microseconds the time since 1970 is ahead of the right one.
    pub ahead_us: i64,
}

impl Clock {
    /// What the clock has counted at that virtual time.
    #[must_use]
    pub fn local_us(&self, virtual_us: u64) -> u64 {
        to_u64(i128::from(virtual_us) * (MILLION + i128::from(self.gain)) / MILLION)
    }

    /// When the clock shows that time.
    pub(super) fn virtual_us(&self, until: Instant) -> u64 {
        let local = until.saturating_duration_since(*BASE).as_nanos().div_ceil(1_000);
        let local_us = u64::try_from(local).unwrap_or(u64::MAX / 2);
        let mut us = to_u64(i128::from(local_us) * MILLION / (MILLION + i128::from(self.gain)));
        while self.local_us(us) < local_us {
            us += 1;
        }
        us
    }

    /// The time since 1970 that it shows at that virtual time.
    #[must_use]
    pub fn unix(&self, virtual_us: u64) -> Duration {
        let us = (BEGINNING_US + self.local_us(virtual_us)).saturating_add_signed(self.ahead_us);
        Duration::from_micros(us)
    }

    /// The microseconds since 1970 that it shows at that virtual time.
    #[must_use]
    pub fn unix_us(&self, virtual_us: u64) -> u64 {
        (BEGINNING_US + self.local_us(virtual_us)).saturating_add_signed(self.ahead_us)
    }
}

/// The instant at which such a clock has counted that long.
pub(super) fn instant(local_us: u64) -> Instant {
    *BASE + Duration::from_micros(local_us)
}

fn to_u64(number: i128) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_when_the_clock_shows_its_time_and_not_a_microsecond_earlier() {
        for gain in [-200, -3, 0, 7, 500] {
            let clock = Clock { gain, ahead_us: 0 };
            for local_us in [1, 999_999, 1_000_003, 3_600_000_001] {
                let us = clock.virtual_us(instant(local_us));
                assert!(clock.local_us(us) >= local_us && clock.local_us(us - 1) < local_us);
            }
        }
    }
}
