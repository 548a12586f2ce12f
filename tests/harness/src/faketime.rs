//! A server whose clock is set while it runs, as an operator or NTP would set it.
//!
//! libfaketime stands between the server and the system. Not every server can be started with it.

use std::env;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::Connection;

use crate::server::{Server, now_us};
use crate::until::wait_until;

/// Names the library. `cargo xtask test --servers all` sets it for those servers that run with it.
pub const LIBRARY_VARIABLE: &str = "TALLYGATE_TEST_FAKETIME";

/// Says in the server's folder how far its clock is off.
const FILE: &str = "clock";

/// A server whose clock is set while it runs.
pub struct FaketimeServer(Server);

impl FaketimeServer {
    /// Starts a server with the right time; `None` if no library is named.
    #[must_use]
    pub fn start() -> Option<Self> {
        let library = env::var(LIBRARY_VARIABLE).ok()?;
        let settings = [
            ("LD_PRELOAD", library.as_str()),
            ("FAKETIME_TIMESTAMP_FILE", FILE),
            // The file is read whenever the clock is.
            ("FAKETIME_NO_CACHE", "1"),
            // Of a system's clocks, only that which shows the date can be set.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        let settings = settings.map(|(name, value)| (name, value.to_owned()));
        Some(Self(Server::start_in_environment(settings.into())))
    }

    /// Returns the server.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.0
    }

    /// Sets the clock to the right time and so many days, and waits until the server shows it.
    pub fn set_days_ahead(&self, days: i32) {
        // In one step: the server never reads half a file.
        let next = self.0.folder().join("next");
        fs::write(&next, format!("{days:+}d")).expect("the folder can be written to");
        fs::rename(next, self.0.folder().join(FILE)).expect("the folder can be written to");
        let mut connection = self.0.connection();
        wait_until("the server shows the time that was set", || days_ahead(&mut connection) == days);
    }
}

/// Returns how many days a server's clock is ahead of the right time.
fn days_ahead(connection: &mut Connection) -> i32 {
    let right = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs_f64();
    let shown = Duration::from_micros(now_us(connection)).as_secs_f64();
    // Rounded, as it takes a while to ask.
    format!("{:.0}", (shown - right) / 86_400.0).parse().expect("a whole number")
}
