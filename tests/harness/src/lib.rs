//! The harness of the tests: real servers, a proxy that fails on purpose, a server whose clock is set by hand, and the
//! behaviour suite that every backend passes.

#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on panics"
)]

pub mod bodies;
pub mod clocked;
pub mod cluster;
pub mod clustered;
pub mod fake;
pub mod faketime;
pub mod gauges;
pub mod launch;
pub mod length;
pub mod lifetime;
pub mod load;
pub mod log;
pub mod mixes;
pub mod model;
pub mod outage;
pub mod pressure;
pub mod proxy;
pub mod punctuality;
pub mod seed;
pub mod sentinels;
pub mod server;
pub mod slots;
pub mod slow_log;
pub mod stage;
pub mod stored;
pub mod suite;
pub mod tls;
pub mod until;

/// Every snippet of the page about algorithms is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../runtime/guide/algorithms.md")]
pub struct Algorithms;

/// Every snippet of the page about simulations, too.
#[cfg(doctest)]
#[doc = include_str!("../../../runtime/guide/simulation.md")]
pub struct Simulations;
