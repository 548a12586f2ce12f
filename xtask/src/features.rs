//! The features of the runtime, in every combination.

use crate::step::{self, Outcome};
use crate::tool::CARGO_HACK;

/// How many features are combined: with more of them, a feature that breaks a build breaks it beside one other already.
/// All together are built by the tests.
const COMBINED: usize = 2;

/// Lints the runtime with each combination of its features, as users build it: without its tests, which need other crates.
pub(crate) fn run() -> Outcome {
    // What is async for the sake of Redis stays so without it.
    let hack = format!(
        "hack clippy -p tallygate --keep-going --feature-powerset --depth {COMBINED} --exclude-features default \
         -- -D warnings -A clippy::unused_async -A clippy::unused_self"
    );
    step::run("each combination of features", &mut CARGO_HACK.command(&hack)?)
}
