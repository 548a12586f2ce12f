//! Redis fails: each call is answered in time, by what its policy says, and the limiter recovers by itself.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod failing;
mod faults;
mod on_outage;
