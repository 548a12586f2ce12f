//! The clock and the timers of a process.

use std::future::{Future, poll_fn};
use std::ops::{Add, AddAssign, Sub};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::process::current;

/// The time on the clock of a process, which stands for both the system's clock and tokio's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(std::time::Instant);

impl Instant {
    pub(crate) fn now() -> Self {
        Self(current().map_or_else(std::time::Instant::now, |process| process.now()))
    }

    pub(crate) fn elapsed(self) -> Duration {
        Self::now().saturating_duration_since(self)
    }

    pub(crate) fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    pub(crate) fn checked_add(self, duration: Duration) -> Option<Self> {
        self.0.checked_add(duration).map(Self)
    }

    pub(crate) fn from_std(instant: Self) -> Self {
        instant
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        self.0 += duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.0 - earlier.0
    }
}

/// Only tests subtract.
#[cfg(test)]
impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        self.0.checked_sub(duration).map(Self).unwrap()
    }
}

pub(crate) fn unix() -> Duration {
    match current() {
        Some(process) => process.unix(),
        None => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
    }
}

/// In the world, one clock stands for both.
#[cfg(feature = "redis")]
pub(crate) fn clocks_differ() -> bool {
    false
}

pub(crate) async fn sleep_until(until: Instant) {
    match current() {
        Some(process) => process.sleep_until(until.0).await,
        None => tokio::time::sleep_until(until.0.into()).await,
    }
}

pub(crate) async fn sleep(duration: Duration) {
    sleep_until(Instant::now() + duration).await;
}

/// In the world, nothing blocks a thread.
pub(crate) async fn sleep_apart(duration: Duration) {
    sleep(duration).await;
}

#[cfg(feature = "redis")]
pub(crate) struct Elapsed;

#[cfg(feature = "redis")]
pub(crate) async fn timeout_at<F: Future>(until: Instant, future: F) -> Result<F::Output, Elapsed> {
    let (mut future, mut late) = (pin!(future), pin!(sleep_until(until)));
    let output = poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => late.as_mut().poll(context).map(|()| Err(Elapsed)),
    });
    output.await
}

#[cfg(feature = "redis")]
pub(crate) async fn timeout<F: Future>(duration: Duration, future: F) -> Result<F::Output, Elapsed> {
    timeout_at(Instant::now() + duration, future).await
}
