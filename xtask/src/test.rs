//! Every test of the workspace, doctests and the snippets of the README included.

use crate::{Outcome, server, step};

/// Runs every test against the server that is found or installed.
pub(crate) fn run() -> Outcome {
    step::announce("the server that the tests start");
    server::run()?;
    let binary = server::find_or_install()?;
    // Apart, so that the time of the tests is their own.
    step::run("build the tests", &mut step::cargo("test --workspace --no-run"))?;
    step::run("run the tests", step::cargo("test --workspace").env(server::VARIABLE, binary))
}
