//! Every test of the workspace, doctests and the snippets of the README included.

use std::{fs, io};

use crate::server::{Server, VARIABLE};
use crate::{Outcome, step};

/// Whose tests may start servers.
const FOLDERS: [&str; 2] = ["tests/tests", "examples/tests"];

/// Of those, the ones that start none: another server changes nothing about them.
const WITHOUT_SERVER: [&str; 4] = ["attribute", "keys", "lints", "ui"];

/// What the names of tests say that need no server, in files beside tests that do.
const IN_MEMORY: [&str; 2] = ["in_memory", "memory_equals"];

/// Runs every test, with the usual server.
pub(crate) fn run() -> Outcome {
    step::announce("the server that the tests start");
    every_test(&Server::usual()?)
}

/// Runs every test with the usual server, and the tests that start servers with each of the others, too.
pub(crate) fn run_with_all_servers() -> Outcome {
    step::announce("the servers that the tests start");
    let servers = Server::all()?;
    let (usual, others) = servers.split_first().ok_or("there is no server")?;
    every_test(usual)?;
    others.iter().try_for_each(tests_with_server)
}

fn every_test(server: &Server) -> Outcome {
    // Apart, so that the time of the tests is their own.
    step::run("build the tests", &mut step::cargo("test --workspace --no-run"))?;
    let title = format!("run the tests: {}", server.version);
    step::run(&title, step::cargo("test --workspace").env(VARIABLE, &server.binary))
}

fn tests_with_server(server: &Server) -> Outcome {
    // The whole workspace again, so that nothing is built with other features.
    let mut tests = step::cargo("test --workspace");
    for folder in FOLDERS {
        let names = names(folder).map_err(|error| format!("cannot read {folder}: {error}"))?;
        let with_server = names.iter().filter(|name| !WITHOUT_SERVER.contains(&name.as_str()));
        tests.args(with_server.flat_map(|name| ["--test", name]));
    }
    tests.arg("--").args(IN_MEMORY.iter().flat_map(|name| ["--skip", name]));
    let title = format!("run the tests that start servers: {}", server.version);
    step::run(&title, tests.env(VARIABLE, &server.binary))
}

/// Returns the names that cargo gives to the tests in a folder.
fn names(folder: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(step::root().join(folder))? {
        let path = entry?.path();
        let is_test = path.join("main.rs").is_file() || path.extension().is_some_and(|extension| extension == "rs");
        names.extend(path.file_stem().filter(|_| is_test).map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}
