//! What changes while processes run, and what they tell of themselves: overrides, files, the list of policies.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod config;
mod operators;
mod overrides;
mod registry;
