//! The figures, measured beside those of other libraries.

use crate::server;
use crate::step::{self, Outcome};

/// Measures all figures, or the groups with these names.
pub(crate) fn run(groups: &[&str]) -> Outcome {
    step::announce("the server that the figures are measured on");
    let server = server::Server::usual()?;
    // The package alone, so that it is not built with the features of the tests.
    step::run(
        "measure",
        step::cargo("run --release -p tallygate-benches --").args(groups).env(server::VARIABLE, server.binary),
    )
}
