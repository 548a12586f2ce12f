//! Plays interleavings of the threads that share tallies, cached denials, overrides and the queue of requests, by shuttle.

use crate::step::{self, Outcome, cargo_with_flags};

/// Puts shuttle's locks and atomics in the place of those of std.
const FLAGS: &str = "--cfg tallygate_shuttle";

/// The folder of what is built.
const FOLDER: &str = "threads";

pub(crate) fn run() -> Outcome {
    let mut lints = cargo_with_flags("clippy -p tallygate --lib --tests -- -D warnings", FLAGS, FOLDER);
    step::run("lints of the threads", &mut lints)?;
    step::run("threads", &mut cargo_with_flags("test -p tallygate --lib threads::", FLAGS, FOLDER))
}
