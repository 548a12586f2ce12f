//! Connections to Redis: addresses, passwords, permissions, certificates, and several servers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod addresses;
mod blocking;
mod connections;
mod drained;
mod misunderstood;
mod passwords;
mod permissions;
mod remedies;
mod runtimes;
mod setup;
mod tls;
mod topology;
mod unbounded;
