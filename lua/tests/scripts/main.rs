//! Tests of the scripts and of their parts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod expanded;
mod parts;
