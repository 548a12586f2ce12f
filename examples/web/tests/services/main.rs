//! The services, run as their users run them and asked over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod actix;
mod axum;
mod dashboard;
mod monitoring;
mod process;
mod prometheus;
mod selector;
mod soak;
mod tonic;
mod traffic;
mod upload;
