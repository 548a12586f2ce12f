//! What is stored in Redis, and the scripts that write it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod bounds;
mod faketime;
mod forged;
mod keys;
mod lifetime;
mod protocol;
mod tally;
mod windows_script;
