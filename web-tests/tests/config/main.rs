//! Limits from a file: what is accepted, what is refused and in which words, and which requests are limited.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod accepted;
mod mistakes;
mod refused;
mod requests;
mod schema;
mod syntax;
