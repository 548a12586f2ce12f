//! Tasks of this workspace, for a machine with nothing but Rust: see [`USAGE`].

#![allow(clippy::print_stdout, reason = "this is a command-line program")]

mod bench;
mod builds;
mod ci;
mod code_block;
mod dependencies;
mod deploy;
mod feature_sets;
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
mod threads;
mod tutorial;
mod type_names;
mod world;

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use self::step::Outcome;
use self::test::{Length, Servers};

/// What to type.
const USAGE: &str = include_str!("../usage.txt");

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
        ["threads"] => threads::run(),
        ["world", options @ ..] => world::run(options),
        [] => Err(USAGE.trim_end().to_owned()),
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
    format!("unknown: `{}`\n\n{}", words.join(" "), USAGE.trim_end())
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
