//! What the log, the metrics and the spans show.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod blocking;
mod charges;
mod decisions;
mod gauges;
mod names;
mod panicking;
mod partners;
mod pauses;
mod subscriber;
