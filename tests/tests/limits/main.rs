//! What a limit admits and answers on every backend: compared with the model, by algorithm, and with each option of a call.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod algorithms;
mod around;
mod behaviour;
mod clocks;
mod denial_cache;
mod denied;
mod flood;
mod linearizable;
mod model;
mod pauses;
mod prefetch;
mod races;
mod schedule;
mod simulation;
mod waiting;
mod warnings;
