//! A Redis server whose clock the test sets, so that what is exact to the microsecond is tested to the microsecond.
//!
//! The shipped script takes the time from Redis only. A limiter that is built with a clock of the
//! test's sends its time along, with a script that differs from the shipped one in the lines that read the clock alone.
//!
//! Keys still expire by the real clock. Windows of minutes, which a test lets pass in no time, see to it that none goes
//! early.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tallygate::Limiter;

use crate::server::{Server, patient};

/// When the clock starts: in 2027, a few microseconds before a full second.
pub const START_US: u64 = 1_800_000_000_000_000 - 7;

/// A server, and the clock that its limiters go by.
pub struct Clocked {
    server: Server,
    now_us: Arc<AtomicU64>,
}

impl Clocked {
    /// Starts a server and its clock.
    #[must_use]
    pub fn start() -> Self {
        Self { server: Server::start(), now_us: Arc::new(AtomicU64::new(START_US)) }
    }

    /// Returns a limiter that keeps its tallies here, and goes by this clock.
    pub async fn limiter(&self) -> Limiter {
        patient().clock(Arc::clone(&self.now_us)).connect(&self.server.url()).await.expect("the server answers")
    }

    /// Returns the server, whose own clock runs on.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the clock's time in microseconds since 1970.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        self.now_us.load(Ordering::Relaxed)
    }

    /// Sets the clock, ahead or back.
    pub fn set(&self, now_us: u64) {
        self.now_us.store(now_us, Ordering::Relaxed);
    }

    /// Lets time pass.
    pub fn advance(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).expect("a test's time is short");
        self.now_us.fetch_add(us, Ordering::Relaxed);
    }
}
