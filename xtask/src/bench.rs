//! The figures, measured beside the peers.

use crate::server;
use crate::step::{self, Outcome};

/// Measures all figures, or the groups of them that are named.
pub(crate) fn run(groups: &[&str]) -> Outcome {
    step::announce("the server that the figures are measured on");
    let server = server::Server::usual()?;
    // The package alone, so that nothing is built with the features of the tests.
    step::run(
        "measure",
        step::cargo("run --release -p tallygate-benches --").args(groups).env(server::VARIABLE, server.binary),
    )
}
