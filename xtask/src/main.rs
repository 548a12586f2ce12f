//! Tasks of this workspace, for a machine with nothing but Rust: see [`USAGE`].

#![allow(clippy::print_stdout, reason = "this is a command-line program")]

mod bench;
mod ci;
mod debian;
mod dependencies;
mod layers;
mod licences;
mod package;
mod server;
mod step;
mod test;
mod wheel;

use std::env;
use std::process::ExitCode;

/// What to type.
const USAGE: &str = "\
usage: cargo xtask <task>

  test                  every test, with the usual server: the redis-server that is found or installed
  test --servers all    the same, and what starts servers once more with Redis 6.2.5 and once with Valkey 9.1.2
  layers                the layers of each crate, and whether every import respects them
  ci                    everything that has to pass: formatting, lints, tests, documentation, packages, examples
  bench [group …]       the figures, measured beside the peers; a report in target/bench
  servers               find or install all these servers, and say which they are";

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["test"] => test::run(),
        ["test", "--servers", "all"] => test::run_with_all_servers(),
        ["ci"] => ci::run(),
        ["bench", ref groups @ ..] => bench::run(groups),
        ["servers"] => server::run(),
        ["layers"] => layers::print(),
        [] => Err(USAGE.to_owned()),
        _ => Err(format!("unknown task `{}`\n\n{USAGE}", words.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(mistake) => {
            eprintln!("\n{mistake}");
            ExitCode::FAILURE
        }
    }
}
