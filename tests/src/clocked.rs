//! A Redis server whose clock the test sets, so that what is exact to the microsecond is tested to the microsecond.
//!
//! The shipped script asks Redis for the time and takes it from nobody else. The one of this server is the shipped one
//! but for that single question, `call('TIME')`, which became a look at a hash that the test writes. A proxy asks for
//! this script whenever a limiter asks for the shipped one; all else is as in production.
//!
//! Keys still expire by the real clock. Windows of minutes, which a test lets pass in no time, see to it that none goes
//! early.

use std::sync::Mutex;
use std::time::Duration;

use redis::{Connection, Script};
use tallygate::Limiter;
use tallygate_lua::DECIDE;

use crate::proxy::{Proxy, Rewrite};
use crate::server::{Server, patient_limiter};

const SHIPPED: &str = "call('TIME')";
const CLOCKED: &str = "call('HMGET', 'clock', 'seconds', 'micros')";

/// When the clock starts: in 2027, a few microseconds before a full second.
pub const START_US: u64 = 1_800_000_000_000_000 - 7;

/// Returns the shipped script with the one change that gives it the test's clock.
#[must_use]
pub fn script() -> String {
    assert_eq!(DECIDE.matches(SHIPPED).count(), 1, "the script asks for the time in one place");
    DECIDE.replace(SHIPPED, CLOCKED)
}

/// A server, a proxy in front of it, and the clock between them.
pub struct Clocked {
    server: Server,
    proxy: Proxy,
    clock: Mutex<Clock>,
}

struct Clock {
    now_us: u64,
    connection: Connection,
}

impl Clocked {
    /// Starts a server and its clock.
    pub async fn start() -> Self {
        let server = Server::start();
        let mut connection = server.connection();
        let loaded: String =
            redis::cmd("SCRIPT").arg("LOAD").arg(script()).query(&mut connection).expect("it compiles");
        let shipped = Script::new(DECIDE).get_hash().to_owned();
        let proxy = Proxy::rewriting(server.port(), Some(Rewrite::new(shipped, loaded))).await;
        let clocked = Self { server, proxy, clock: Mutex::new(Clock { now_us: START_US, connection }) };
        clocked.set(START_US);
        clocked
    }

    /// Returns a limiter that keeps its tallies here, and goes by this clock.
    pub async fn limiter(&self) -> Limiter {
        patient_limiter(&self.proxy.url()).await
    }

    /// Returns the server, whose own clock runs on.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the clock's time in microseconds since 1970.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        self.clock.lock().expect("no panic under the lock").now_us
    }

    /// Sets the clock, ahead or back.
    pub fn set(&self, now_us: u64) {
        let mut clock = self.clock.lock().expect("no panic under the lock");
        clock.now_us = now_us;
        redis::cmd("HSET")
            .arg(&["clock", "seconds"])
            .arg(now_us / 1_000_000)
            .arg("micros")
            .arg(now_us % 1_000_000)
            .exec(&mut clock.connection)
            .expect("the server answers");
    }

    /// Lets time pass.
    pub fn advance(&self, time: Duration) {
        self.set(self.now_us() + u64::try_from(time.as_micros()).expect("a test's time is short"));
    }
}
