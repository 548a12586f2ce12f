//! Limits in axum, asked over sockets by a client.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod clients;
mod fields;
mod limits;
mod own_context;
mod responses;
