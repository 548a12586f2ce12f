//! For the tests of programs with limits: clocks, and limiters of their own.
//!
//! Enable the feature `testing` where only tests see it:
//!
//! ```toml
//! [dev-dependencies]
//! tallygate = { version = "0.1", features = ["testing"] }
//! ```
//!
//! | the test is about | what it moves |
//! | --- | --- |
//! | windows of a limiter in memory | [tokio's clock](#tokios-clock), paused |
//! | a rule with `cron`, or any date | a [`ManualClock`] |
//! | a limiter in Redis | a [`ManualClock`] |
//!
//! # A limiter of its own
//!
//! Tests that run in parallel in one process share the installed limiter. A test with another limiter in its
//! [context](crate::context) is not limited by other tests, and installs nothing:
//!
//! ```
//! use tallygate::context::{self, Context};
//! use tallygate::{Limiter, Rejection, rate_limit};
//!
//! #[rate_limit(key = "sms:{phone}", rule(count = 1, per = "60s"))]
//! async fn send_code(phone: &str) -> Result<(), Rejection> {
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! for _ in 0..2 {
//!     let test = async {
//!         assert!(send_code("13800000000").await.is_ok());
//!         assert!(send_code("13800000000").await.is_err());
//!     };
//!     context::scope(Context::test().limiter(&Limiter::in_memory()), test).await;
//! }
//! # }
//! ```
//!
//! This context also works for a router that the test calls, for example by `oneshot`. A server that the test starts
//! gets it from its layer: `web::Layer::new().context(Context::test().limiter(&limiter))`.
//!
//! # Tokio's clock
//!
//! A limiter in memory uses tokio's clock, which a test can pause and advance. This needs tokio's feature `test-util`
//! and no feature of this crate.
//!
//! ```
//! use std::time::Duration;
//! use tallygate::{Limiter, Rejection, rate_limit};
//!
//! #[rate_limit(key = "sms:{phone}", limiter = limiter, rule(count = 1, per = "60s"))]
//! async fn send_code(limiter: &Limiter, phone: &str) -> Result<(), Rejection> {
//!     Ok(())
//! }
//!
//! // In a test: #[tokio::test(start_paused = true)]
//! #[tokio::main(flavor = "current_thread", start_paused = true)]
//! async fn main() {
//!     let limiter = Limiter::in_memory();
//!     assert!(send_code(&limiter, "13800000000").await.is_ok());
//!     assert!(send_code(&limiter, "13800000000").await.is_err());
//!     tokio::time::advance(Duration::from_secs(60)).await;
//!     assert!(send_code(&limiter, "13800000000").await.is_ok());
//! }
//! ```
//!
//! A limiter in Redis works while tokio's clock is paused, but Redis decides by its own clock, so `advance` ends no
//! window there. The deadline of a decision is measured in real time, during which the paused clock stands still. Pause
//! the clock before the limiter connects; otherwise the first decision may move it by up to the deadline.
//!
//! # A clock that is set by hand
//!
//! Tokio's clock starts at the time of the test. A [`ManualClock`] starts at any time, for example just before a daily
//! limit starts again, at six in the morning in Shanghai:
//!
#![cfg_attr(feature = "cron", doc = "```")]
#![cfg_attr(not(feature = "cron"), doc = "```ignore")]
//! use std::time::{Duration, SystemTime};
//! use tallygate::testing::ManualClock;
//! use tallygate::{Limiter, Rejection, rate_limit};
//!
//! #[rate_limit(
//!     key = "coupon:{user}",
//!     limiter = limiter,
//!     rule(count = 1, cron = "0 0 6 * * *", tz = "Asia/Shanghai")
//! )]
//! async fn draw_coupon(limiter: &Limiter, user: &str) -> Result<(), Rejection> {
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The first of March 2027, 06:00 in Shanghai and 22:00 of the day before in UTC.
//! let six = SystemTime::UNIX_EPOCH + Duration::from_secs(1_803_852_000);
//! let clock = ManualClock::new(six - Duration::from_secs(1));
//! let limiter = Limiter::builder().clock(&clock).build_in_memory()?;
//!
//! assert!(draw_coupon(&limiter, "alice").await.is_ok());
//! let rejection = draw_coupon(&limiter, "alice").await.unwrap_err();
//! assert_eq!(rejection.retry_after(), Some(Duration::from_secs(1)));
//!
//! clock.set(six);
//! assert!(draw_coupon(&limiter, "alice").await.is_ok());
//! assert!(draw_coupon(&limiter, "alice").await.is_err());
//! # Ok(())
//! # }
//! ```
//!
//! With `connect("redis://127.0.0.1/").await?` the same test runs on Redis, which then decides by this clock. Every
//! process that shares the tallies needs the same clock. Keys still expire by the clock of the server, so give such a
//! test windows that are longer than the test takes.
//!
//! Calls that [wait](crate::Check::wait) use the clock of their limiter: they go on when the test advances it far
//! enough.

pub use crate::clock::manual::ManualClock;
use crate::context::Context;
use crate::limiter::Limiter;

impl Context {
    /// Makes this the [installed](Limiter::installed) limiter within this context, so that each test can have its own:
    /// see the module [`testing`](crate::testing).
    ///
    /// The limiter is kept until the process ends.
    #[must_use]
    pub fn limiter(self, limiter: &Limiter) -> Self {
        self.with_test_limiter(Box::leak(Box::new(limiter.clone())))
    }
}
