//! Tasks of this workspace, for a machine with nothing but Rust: see [`USAGE`].

#![allow(clippy::print_stdout, reason = "this is a command-line program")]

mod bench;
mod builds;
mod ci;
mod dependencies;
mod deploy;
mod install;
mod layers;
mod package;
#[cfg(test)]
mod pages;
mod pictures;
mod server;
mod size;
mod soak;
mod source;
mod step;
mod test;
mod world;

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use self::step::Outcome;
use self::test::{Length, Servers};

/// What to type.
const USAGE: &str = "\
usage: cargo xtask <task>

  test                  every test, in a short form, with the redis-server that is found or installed
    --long              more random cases, and every case that the compiler compiles
    --servers all       the tests that start servers also with Redis 6.2.5 and Valkey 9.1.2
  ci [check …]          everything that has to pass, with the tests in their long form and on all servers;
                        or only: format, layers, licences, dependencies, lints, features, rust-version,
                        minimal-versions, compatibility, test, world, deploy, soak, documentation,
                        pictures, package
  layers                print the layers of each crate, and check every import
  bench [group …]       measure the figures beside those of the peers; a report in target/bench
    --redis-cell <path> also beside redis-cell, whose module is built from its source
  soak                  call while the server fails again and again, and look whether anything leaks
    --examples          the same with all examples at once; first, if there are both options
    --minutes <number>  for how long; 10 unless it is said
  pictures              draw the pictures of the documentation from what the library decides
    --check             only look whether they are what would be drawn
    --record            first record the numbers of the dashboard anew, by a Prometheus
  servers               find or install all these servers, and print which they are
  size                  print how large each crate is, and what a newcomer reads and compiles
  world [option …]      play simulated worlds; `--help` lists the options";

fn main() -> ExitCode {
    let started = Instant::now();
    let words: Vec<_> = env::args().skip(1).collect();
    let outcome = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    step::print_all(started);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(mistake) => {
            eprintln!("\n{mistake}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Outcome {
    match words {
        ["test", options @ ..] => {
            let (length, servers) = test_options(options)?;
            test::run(length, servers)
        }
        ["ci", checks @ ..] => ci::run(checks),
        ["layers"] => layers::print(),
        ["bench", groups @ ..] => bench::run(groups),
        ["soak", options @ ..] => soak::run(options),
        ["pictures"] => pictures::draw(),
        ["pictures", "--check"] => pictures::check(),
        ["pictures", "--record"] => deploy::record(),
        ["servers"] => server::run(),
        ["size"] => size::print(),
        ["world", options @ ..] => world::run(options),
        [] => Err(USAGE.to_owned()),
        _ => Err(unknown(words)),
    }
}

fn test_options(options: &[&str]) -> Result<(Length, Servers), String> {
    match options {
        [] => Ok((Length::Short, Servers::Usual)),
        ["--long", rest @ ..] => Ok((Length::Long, test_options(rest)?.1)),
        ["--servers", "all", rest @ ..] => Ok((test_options(rest)?.0, Servers::All)),
        _ => Err(unknown(options)),
    }
}

fn unknown(words: &[&str]) -> String {
    format!("unknown: `{}`\n\n{USAGE}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_test_combine_in_any_order() {
        for options in [["--long", "--servers", "all"], ["--servers", "all", "--long"]] {
            assert!(test_options(&options) == Ok((Length::Long, Servers::All)));
        }
        assert!(test_options(&["--servers", "all"]) == Ok((Length::Short, Servers::All)));
        assert!(test_options(&["--quick"]).is_err());
    }
}
