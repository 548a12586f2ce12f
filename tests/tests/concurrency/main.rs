//! Limits on concurrent calls, and concurrent callers: no more bodies run than a limit allows, however they end.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod bodies;
mod callers;
mod cluster;
mod dropped;
mod leases;
mod processes;
mod releases;
mod renewals;
mod returns;
mod workers;
