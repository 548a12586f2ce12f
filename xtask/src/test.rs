//! Every test of the workspace, doctests and the snippets of the README included.

use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use crate::server::{self, Server, VARIABLE};
use crate::step::{self, Outcome};

/// Set to `1`, tests play as much as they ever do.
const LONG_VARIABLE: &str = "TALLYGATE_TEST_LONG";

/// Names the library by which a test sets the clock of its server.
const FAKETIME_VARIABLE: &str = "TALLYGATE_TEST_FAKETIME";

/// Parts of the names of tests that start no server, or of their modules. The second one compiles for long.
const WITHOUT_SERVER: [&str; 2] = ["in_memory", "the_compiler_shows_the_expected_errors"];

const TESTS_PER_CORE: usize = 4;

/// All programs of tests, in two halves that take about as long. The names of programs begin with small letters.
const HALVES: [&str; 2] = ["--lib --bins --test [a-e]*", "--test [f-z]*"];

/// How much is tested at random, and how many cases the compiler compiles.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Length {
    Short,
    Long,
}

/// The servers that the tests start.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Servers {
    Usual,
    All,
}

/// Runs every test with the usual server, and the tests that start servers with each of the others, too.
pub(crate) fn run(length: Length, servers: Servers) -> Outcome {
    step::announce("the server that the tests start");
    every_test(&Server::usual()?, length)?;
    if servers == Servers::All { run_on_others(length) } else { Ok(()) }
}

/// Runs the tests that start servers with each server but the usual one.
pub(crate) fn run_on_others(length: Length) -> Outcome {
    step::announce("the other servers");
    let faketime = server::faketime()?;
    Server::others()?.iter().try_for_each(|server| tests_with_server(server, &faketime, length))
}

fn every_test(server: &Server, length: Length) -> Outcome {
    // Apart, so that the time of the tests is their own.
    step::run("build the tests", &mut step::cargo("test --workspace --no-run"))?;
    // To the end, so that one run tells every test that fails.
    let command =
        |words: &str| configure(step::cargo(&format!("test --workspace --no-fail-fast {words}")), server, length);
    let [first, second] = HALVES.map(|half| (format!("run the tests {half}: {}", server.version), command(half)));
    if length == Length::Long {
        // Long ones use the whole machine, and would take servers of each other for dead.
        let outcomes = [first, second, ("snippets".to_owned(), command("--doc"))]
            .map(|(title, mut tests)| step::run(&title, &mut tests));
        return outcomes.into_iter().collect();
    }
    // Beside each other, as most tests wait most of the time.
    step::run_beside("snippets", command("--doc"), || {
        step::run_beside(&second.0, second.1, || step::run(&first.0, &mut { first.1 }))
    })
}

/// Runs the programs of the tests again, whichever of their tests start the server.
fn tests_with_server(server: &Server, faketime: &Path, length: Length) -> Outcome {
    // The whole workspace: without a package, cargo would choose other features, and build everything once more.
    let mut tests = configure(step::cargo("test --workspace --no-fail-fast --test * --"), server, length);
    tests.args(WITHOUT_SERVER.iter().flat_map(|name| ["--skip", name]));
    let title = format!("run the tests that start servers: {}", server.version);
    step::run(&title, tests.env(FAKETIME_VARIABLE, faketime))
}

fn configure(mut tests: Command, server: &Server, length: Length) -> Command {
    if length == Length::Long {
        tests.env(LONG_VARIABLE, "1");
    }
    // Most tests wait for a server most of the time.
    let threads = available_parallelism().map_or(1, usize::from) * TESTS_PER_CORE;
    tests.env(VARIABLE, &server.binary).env("RUST_TEST_THREADS", threads.to_string());
    tests
}
