//! The examples, run as their users run them; the services are asked over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod built;
mod dashboard;
mod gateway;
mod monitoring;
mod process;
mod programs;
mod prometheus;
mod selector;
mod service;
mod small;
mod soak;
mod tonic;
mod traffic;
mod upload;
