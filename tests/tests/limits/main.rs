//! What a limit admits and answers, on every backend: by the model, by every algorithm, with whatever a call may ask for.

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
mod races;
mod schedule;
mod simulation;
mod waiting;
mod warnings;
