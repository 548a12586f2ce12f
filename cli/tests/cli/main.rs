//! The command line, as its user runs it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod bans;
mod changes;
mod completions;
mod console;
mod doctor;
mod encrypted;
mod examples;
mod failures;
mod files;
mod interruptions;
mod looking;
mod overrides;
mod page;
mod pauses;
mod plans;
mod running;
mod seeded;
mod shadows;
mod simulation;
mod terminal;
mod topologies;
mod tops;
mod totals;
mod varying;
mod watch;
