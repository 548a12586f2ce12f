//! A clock that a test or a simulation moves.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tallygate_rules::MAX_PER;
use tokio::sync::watch;

use crate::micros;

/// The times that a clock can be set to, in microseconds since 1970.
///
/// No window reaches back before 1970, and none ends after 2^53 microseconds, up to which the script counts exactly.
pub(crate) const RANGE_US: RangeInclusive<u64> = {
    let longest_us = MAX_PER.as_secs() * 1_000_000;
    longest_us..=(1 << 53) - longest_us
};

/// A clock that stands still until a test moves it.
///
/// A limiter that is [built with it](crate::LimiterBuilder::clock) decides by its time, in memory and in Redis. Clones
/// show the same time, so keep one to move the clock. It counts whole microseconds.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tallygate::testing::ManualClock;
/// use tallygate::{Limiter, Policy, Rule, Subject};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new(SystemTime::now());
/// let limiter = Limiter::builder().clock(&clock).build_in_memory()?;
///
/// let policy = Policy::builder("export").rule(Rule::sliding_window(1, Duration::from_secs(3600))).build()?;
/// let alice = Subject::of("alice");
/// assert!(limiter.check(&policy, &alice).await?.is_allowed());
/// clock.advance(Duration::from_secs(3599));
/// assert!(!limiter.check(&policy, &alice).await?.is_allowed());
/// clock.advance(Duration::from_secs(1));
/// assert!(limiter.check(&policy, &alice).await?.is_allowed());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    now_us: watch::Sender<u64>,
}

impl ManualClock {
    /// Returns a clock that shows this time.
    ///
    /// # Panics
    ///
    /// Panics if the time is before 1981 or after 2244.
    #[must_use]
    #[track_caller]
    pub fn new(now: SystemTime) -> Self {
        Self::starting_at(checked_us(now))
    }

    /// Returns the time that the clock shows.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(self.now_us())
    }

    /// Moves the clock on by this duration. Callers that wait for admission wake up.
    ///
    /// # Panics
    ///
    /// Panics if the clock would show a time after 2244.
    #[track_caller]
    pub fn advance(&self, duration: Duration) {
        let mut in_range = true;
        self.now_us.send_if_modified(|now_us| {
            let then_us = now_us.saturating_add(micros::from_duration(duration));
            in_range = RANGE_US.contains(&then_us);
            if in_range {
                *now_us = then_us;
            }
            in_range
        });
        assert!(in_range, "a manual clock shows times between 1981 and 2244");
    }

    /// Sets the clock to this time, which may be earlier than the time that it shows.
    ///
    /// # Panics
    ///
    /// Panics if the time is before 1981 or after 2244.
    #[track_caller]
    pub fn set(&self, now: SystemTime) {
        self.set_us(checked_us(now));
    }
}

impl ManualClock {
    pub(crate) fn starting_at(us: u64) -> Self {
        Self { now_us: watch::Sender::new(us) }
    }

    pub(crate) fn set_us(&self, us: u64) {
        self.now_us.send_replace(us);
    }

    pub(crate) fn now_us(&self) -> u64 {
        *self.now_us.borrow()
    }

    pub(crate) async fn sleep_until(&self, us: u64) {
        // The channel cannot be closed, because this clock is a sender.
        let _ = self.now_us.subscribe().wait_for(|now_us| *now_us >= us).await;
    }
}

#[track_caller]
fn checked_us(time: SystemTime) -> u64 {
    let us = time.duration_since(UNIX_EPOCH).map_or(0, micros::from_duration);
    assert!(RANGE_US.contains(&us), "a manual clock shows times between 1981 and 2244");
    us
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(secs)
    }

    const YEAR_1981: u64 = 347_155_200;
    const YEAR_2245: u64 = 8_678_188_800;

    #[test]
    fn clones_show_the_same_time() {
        let clock = ManualClock::new(at(YEAR_1981));
        let clone = clock.clone();
        clock.advance(Duration::from_micros(7));
        assert_eq!(clone.now(), at(YEAR_1981) + Duration::from_micros(7));
        clone.set(at(YEAR_1981 + 9));
        clock.set(at(YEAR_1981 + 8));
        assert_eq!((clock.now(), clone.now()), (at(YEAR_1981 + 8), at(YEAR_1981 + 8)));
    }

    #[test]
    fn the_documented_years_are_in_range() {
        let clock = ManualClock::new(at(YEAR_1981));
        clock.set(at(YEAR_2245) - Duration::from_micros(1));
    }

    #[test]
    #[should_panic(expected = "between 1981 and 2244")]
    fn a_time_that_is_too_early_for_the_windows_is_refused() {
        let _ = ManualClock::new(UNIX_EPOCH);
    }

    #[test]
    #[should_panic(expected = "between 1981 and 2244")]
    fn a_time_that_is_too_late_to_be_counted_exactly_is_refused() {
        ManualClock::new(at(YEAR_1981)).advance(Duration::MAX);
    }
}
