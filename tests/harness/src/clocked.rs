//! A Redis server that decides by a clock of the test, so that tests can be exact to the microsecond.
//!
//! The shipped script asks Redis for the time. A limiter with a clock of its own sends its time along, with a script that
//! differs from the shipped one only in the lines that read the clock.
//!
//! Keys still expire by the real clock. These tests use windows of minutes, which pass at once, so that no key expires
//! early.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tallygate::Limiter;
use tallygate::testing::ManualClock;

use crate::server::{Server, connected, patient};

/// When the clock starts: in 2027, a few microseconds before a full second.
pub const START_US: u64 = 1_800_000_000_000_000 - 7;

/// Returns the time of that many microseconds since 1970.
#[must_use]
pub fn time(us: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(us)
}

/// Returns a clock that stands at the start.
#[must_use]
pub fn new_clock() -> ManualClock {
    ManualClock::new(time(START_US))
}

/// A server, and the clock of its limiters.
pub struct Clocked {
    server: Server,
    clock: ManualClock,
}

impl Clocked {
    /// Starts a server and its clock.
    #[must_use]
    pub fn start() -> Self {
        Self { server: Server::start(), clock: new_clock() }
    }

    /// Returns a limiter that keeps its tallies here and decides by this clock.
    pub async fn limiter(&self) -> Limiter {
        self.limiter_of("tallygate").await
    }

    /// Returns such a limiter with a prefix.
    pub async fn limiter_of(&self, prefix: &str) -> Limiter {
        let builder = patient().prefix(prefix).clock(&self.clock);
        connected(&builder, &self.server.url()).await
    }

    /// Returns the server. Its own clock runs on.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns its clock.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Returns the clock's time in microseconds since 1970.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        let now = self.clock.now().duration_since(UNIX_EPOCH).expect("after 1970");
        u64::try_from(now.as_micros()).expect("before the year 2245")
    }

    /// Sets the clock, ahead or back.
    pub fn set(&self, now_us: u64) {
        self.clock.set(time(now_us));
    }

    /// Lets time pass.
    pub fn advance(&self, time: Duration) {
        self.clock.advance(time);
    }
}
