//! The pictures of the documentation.

use crate::step::{self, Outcome, cargo};

/// The recorded numbers of the dashboard.
pub(crate) const RECORDED: &str = "pictures/recorded/dashboard.json";

/// Draws them from what the library decides.
pub(crate) fn draw() -> Outcome {
    step::run("draw the pictures", &mut cargo("run --quiet -p tallygate-pictures"))
}

/// Checks that they are what would be drawn.
pub(crate) fn check() -> Outcome {
    step::run("pictures", &mut cargo("run --quiet -p tallygate-pictures -- --check"))
}
