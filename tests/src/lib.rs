//! The harness of the tests: real servers, a proxy that fails on purpose, a server whose clock is set by hand, and the
//! behaviour suite that every backend passes.

#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on panics"
)]

pub mod clocked;
pub mod length;
pub mod lifetime;
pub mod load;
pub mod log;
pub mod mixes;
pub mod model;
pub mod proxy;
pub mod punctuality;
pub mod seed;
pub mod server;
pub mod stage;
pub mod stored;
pub mod suite;

/// Every snippet of the README is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
