//! The scripts, and the parts of which they are made.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod expanded;
mod parts;
