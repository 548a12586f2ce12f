//! Calls for minutes while the server fails again and again, and looks whether anything leaks.

use std::process::Command;

use crate::server::{self, Server};
use crate::step::{self, Outcome};

/// The options: whether the examples are called, and for how long.
const EXAMPLES: &str = "--examples";
const MINUTES: &str = "--minutes";
const USUAL: &str = "10";

pub(crate) fn run(options: &[&str]) -> Outcome {
    let (examples, rest) = match options {
        [EXAMPLES, rest @ ..] => (true, rest),
        _ => (false, options),
    };
    let minutes = match rest {
        [] => USUAL,
        [MINUTES, minutes] if minutes.parse::<f64>().is_ok_and(|minutes| minutes > 0.0) => minutes,
        _ => return Err(format!("unknown: `{}`; write `{EXAMPLES} {MINUTES} {USUAL}`", options.join(" "))),
    };
    step::announce("the server that fails");
    let server = Server::usual()?;
    if examples { run_examples(minutes, &server) } else { run_library(minutes, &server) }
}

fn run_library(minutes: &str, server: &Server) -> Outcome {
    // Beside a test, so that what the tests have built is not built again with other features.
    step::run("build the soak", &mut step::cargo("build --workspace --profile test --bin soak --test concurrency"))?;
    let mut soak = Command::new(step::target().join("debug").join("soak"));
    step::run("soak", soak.arg(minutes).env(server::VARIABLE, &server.binary))
}

/// The test has all that it needs to start the services and to call them.
fn run_examples(minutes: &str, server: &Server) -> Outcome {
    let mut test = step::cargo("test --workspace --test examples -- --nocapture soak::");
    step::run("soak of the examples", test.env(server::VARIABLE, &server.binary).env("TALLYGATE_SOAK_MINUTES", minutes))
}
