//! Every test of the workspace, doctests and the snippets of the README included.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::server::{self, Server, VARIABLE};
use crate::step::{self, Outcome};

/// The folders of the tests that may start servers.
const FOLDERS: [&str; 4] = ["tests/tests", "web-tests/tests", "example-tests/tests", "cli/tests"];

/// Every test that starts a server uses it, beyond [`LENGTH`].
const HARNESS: &str = "tallygate_tests::";

/// The module of the harness that tells the length of the tests. It starts no server.
const LENGTH: &str = "length";

/// Set to `1`, tests play as much as they ever do.
const LONG_VARIABLE: &str = "TALLYGATE_TEST_LONG";

/// Names the library by which a test sets the clock of its server.
const FAKETIME_VARIABLE: &str = "TALLYGATE_TEST_FAKETIME";

/// Parts of the names of long tests that need no server, in files with tests that do: they run once.
const ONCE: [&str; 3] = ["in_memory", "memory_equals", "a_million_random_pairs"];

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
    run_with(length, length, servers)
}

/// The same on all servers, where the tests with the others may have another length.
pub(crate) fn run_on_all(length: Length, of_others: Length) -> Outcome {
    run_with(length, of_others, Servers::All)
}

fn run_with(length: Length, of_others: Length, servers: Servers) -> Outcome {
    step::announce("the servers that the tests start");
    let servers = if servers == Servers::All { Server::all()? } else { vec![Server::usual()?] };
    let (usual, others) = servers.split_first().ok_or("there is no server")?;
    every_test(usual, length)?;
    if others.is_empty() {
        return Ok(());
    }
    let faketime = server::faketime()?;
    others.iter().try_for_each(|server| tests_with_server(server, &faketime, of_others))
}

fn every_test(server: &Server, length: Length) -> Outcome {
    // Apart, so that the time of the tests is their own.
    step::run("build the tests", &mut step::cargo("test --workspace --no-run"))?;
    let title = format!("run the tests: {}", server.version);
    // To the end, so that one run tells every test that fails.
    step::run(&title, configure(&mut step::cargo("test --workspace --no-fail-fast"), server, length))
}

fn tests_with_server(server: &Server, faketime: &Path, length: Length) -> Outcome {
    // The whole workspace again, so that nothing is built with other features.
    let mut tests = step::cargo("test --workspace --no-fail-fast");
    for folder in FOLDERS {
        let names = names_with_server(folder).map_err(|error| format!("cannot read {folder}: {error}"))?;
        tests.args(names.iter().flat_map(|name| ["--test", name]));
    }
    tests.env(FAKETIME_VARIABLE, faketime);
    tests.arg("--").args(ONCE.iter().flat_map(|name| ["--skip", name]));
    let title = format!("run the tests that start servers: {}", server.version);
    step::run(&title, configure(&mut tests, server, length))
}

fn configure<'a>(tests: &'a mut Command, server: &Server, length: Length) -> &'a mut Command {
    if length == Length::Long {
        tests.env(LONG_VARIABLE, "1");
    }
    tests.env(VARIABLE, &server.binary)
}

/// Returns the names that cargo gives to those tests of a folder that may start servers.
fn names_with_server(folder: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for test in files(&step::root().join(folder))? {
        let sources = if test.is_dir() { files(&test)? } else { vec![test.clone()] };
        let may_start = sources.iter().any(|file| fs::read_to_string(file).is_ok_and(|text| may_start_servers(&text)));
        names.extend(test.file_stem().filter(|_| may_start).map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn may_start_servers(text: &str) -> bool {
    text.split(HARNESS).skip(1).any(|used| !used.starts_with(LENGTH))
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_only_asks_for_its_length_starts_no_server() {
        assert!(!may_start_servers("use tallygate::Limiter;\nuse tallygate_tests::length::is_long;"));
        assert!(may_start_servers("use tallygate_tests::length::cases;\nuse tallygate_tests::server::Server;"));
        assert!(may_start_servers("use tallygate_tests::{length::cases, server::Server};"));
    }
}
