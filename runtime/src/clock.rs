//! The clock of a limiter: tokio's, or one that a test or a simulation moves.

#[cfg(any(feature = "testing", feature = "simulation"))]
pub(crate) mod manual;

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tallygate_rules::{MAX_PER, MAX_STANDSTILL};

#[cfg(any(feature = "testing", feature = "simulation"))]
use self::manual::ManualClock;
use crate::micros;
use crate::system::{TokioInstant, sleep_until, unix};

/// A clock that shows microseconds since 1970.
#[derive(Clone, Debug)]
pub(crate) struct Clock(ClockSource);

#[derive(Clone, Debug)]
enum ClockSource {
    /// Never goes back. A test that pauses tokio's time can advance it.
    Tokio { started: TokioInstant, started_us: u64 },
    #[cfg(any(feature = "testing", feature = "simulation"))]
    Manual(ManualClock),
}

impl Clock {
    pub(crate) fn tokio() -> Self {
        // No earlier than the longest window, so that no window reaches back before 1970.
        Self(ClockSource::Tokio {
            started: TokioInstant::now(),
            started_us: micros::from_duration(unix().max(MAX_PER)),
        })
    }

    /// Returns tokio's clock, this number of microseconds ahead.
    #[cfg(feature = "testing")]
    pub(crate) fn tokio_ahead_by(us: i64) -> Self {
        match Self::tokio().0 {
            ClockSource::Tokio { started, started_us } => {
                Self(ClockSource::Tokio { started, started_us: started_us.saturating_add_signed(us) })
            }
            manual @ ClockSource::Manual(_) => Self(manual),
        }
    }

    #[inline]
    pub(crate) fn now_us(&self) -> u64 {
        match &self.0 {
            ClockSource::Tokio { started, started_us } => {
                started_us + micros::from_duration(TokioInstant::now().saturating_duration_since(*started))
            }
            #[cfg(any(feature = "testing", feature = "simulation"))]
            ClockSource::Manual(clock) => clock.now_us(),
        }
    }

    /// Returns the time by which Redis has to decide, if this clock is moved by hand; else the server's clock decides.
    pub(crate) fn manual_us(&self) -> Option<u64> {
        match &self.0 {
            ClockSource::Tokio { .. } => None,
            #[cfg(any(feature = "testing", feature = "simulation"))]
            ClockSource::Manual(clock) => Some(clock.now_us()),
        }
    }

    pub(crate) async fn sleep_until(&self, us: u64) {
        match &self.0 {
            ClockSource::Tokio { started, started_us } => {
                match started.checked_add(Duration::from_micros(us.saturating_sub(*started_us))) {
                    Some(time) => sleep_until(time).await,
                    None => pending().await,
                }
            }
            #[cfg(any(feature = "testing", feature = "simulation"))]
            ClockSource::Manual(clock) => clock.sleep_until(us).await,
        }
    }

    /// Awaits a future; `None` if the clock reaches that time first.
    pub(crate) async fn timeout_at<F: Future>(&self, us: u64, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut late = pin!(self.sleep_until(us));
        let output = poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => late.as_mut().poll(context).map(|()| None),
        });
        output.await
    }
}

#[cfg(any(feature = "testing", feature = "simulation"))]
impl From<&ManualClock> for Clock {
    fn from(clock: &ManualClock) -> Self {
        Self(ClockSource::Manual(clock.clone()))
    }
}

/// Whether the clock was set back since that time. If it has gone back by little, it stands still until it has caught
/// up.
#[inline]
pub(crate) fn is_set_back(since_us: u64, now_us: u64) -> bool {
    since_us > now_us + micros::from_duration(MAX_STANDSTILL)
}

/// Returns the time as of which something is decided that was last used at `latest_us`: the clock stands still if it has gone
/// back by little.
#[inline]
pub(crate) fn settled(latest_us: u64, now_us: u64) -> u64 {
    if is_set_back(latest_us, now_us) { now_us } else { now_us.max(latest_us) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_US: u64 = 1_000_000;

    #[tokio::test(start_paused = true)]
    async fn sleep_ends_at_its_time_on_a_clock_that_tokio_pauses() {
        let clock = Clock::tokio();
        let start_us = clock.now_us();
        clock.sleep_until(start_us + 7 * SECOND_US).await;
        assert_eq!(clock.now_us(), start_us + 7 * SECOND_US);
        clock.sleep_until(start_us).await;
        assert_eq!(clock.timeout_at(start_us + 9 * SECOND_US, pending::<()>()).await, None);
        assert_eq!(clock.now_us(), start_us + 9 * SECOND_US);
        assert_eq!(clock.timeout_at(u64::MAX, async { 7 }).await, Some(7));
    }
}
