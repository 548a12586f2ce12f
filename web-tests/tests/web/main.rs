//! Limits on the web: in each framework, from a file, and in the log.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod actix;
mod admin;
mod alike;
mod axum;
mod config;
mod decided;
mod foreign;
mod heard;
mod openapi;
mod opentelemetry;
mod paced;
mod spellings;
mod streams;
mod tonic;
