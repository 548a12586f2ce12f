//! Plays simulated worlds: fleets of limiters, their networks and their servers, each in one thread and by one seed.

mod found;
mod planted;

use std::path::PathBuf;
use std::process::Command;

use self::found::Programs;
use crate::step::{self, Outcome, cargo_with_flags};

/// What builds the library for a world: its seam, and the seed of tokio's own chance.
const FLAGS: &str = "--cfg tallygate_world --cfg tokio_unstable";

/// The folder of what is built.
const FOLDER: &str = "world";

/// The folder of the copy with faults, and of what is built of it: cargo would take it for the sources themselves.
const PLANTED_FOLDER: &str = "planted";

/// How many seeds the check plays of each topology, and how many it plays twice. Sentinels are asked all the time.
const SEEDS: [(&str, &str); 3] = [("server", "1500"), ("sentinel", "150"), ("cluster", "300")];
const SEEDS_TWICE: &str = "12";

pub(crate) fn run(options: &[&str]) -> Outcome {
    if options.contains(&"--planted") {
        return play_planted(options);
    }
    step::run("build the world", &mut with_flags("build --release -p tallygate-world --bin tallygate-world"))?;
    step::run("world", Command::new(program("release")).args(options))
}

/// Plays faults that are planted in the scripts and, in a copy of the sources, in the library.
fn play_planted(options: &[&str]) -> Outcome {
    let folder = step::target().join(PLANTED_FOLDER);
    let sources = plant()?;
    let mut build = cargo_with_flags("build --release -p tallygate-world --bin tallygate-world", FLAGS, PLANTED_FOLDER);
    step::run("build the world with faults", build.current_dir(&sources))?;
    let program = folder.join("release/tallygate-world");
    let in_scripts = step::run("faults in scripts", Command::new(&program).args(options));
    in_scripts.and(planted::play(&program, options))
}

/// Plays one seed of each fault: the one that has found it. The library is built without optimization, which is sooner done.
fn check_planted() -> Outcome {
    let mut build = cargo_with_flags("build -p tallygate-world --bin tallygate-world", FLAGS, PLANTED_FOLDER);
    step::run("build the world with faults", build.current_dir(plant()?))?;
    let of_library = step::target().join(PLANTED_FOLDER).join("debug/tallygate-world");
    let programs = Programs { of_scripts: program("release"), of_library };
    step::timed("a seed of each fault", || found::play(&programs))
}

/// Returns the folder of a copy of the sources with all faults.
fn plant() -> Result<PathBuf, String> {
    let sources = step::target().join(PLANTED_FOLDER).join("sources");
    planted::copy(&sources)?;
    Ok(sources)
}

/// As many worlds as two minutes have time for, whether faults are found, and whether a seed gives one history, however the
/// world is built.
pub(crate) fn check() -> Outcome {
    step::run(
        "lints of the world",
        &mut with_flags("clippy --release -p tallygate-world --lib --bins -- -D warnings"),
    )?;
    // With fewer features, dead code is allowed.
    step::run("lints of the seam", &mut with_flags("clippy -p tallygate --all-targets --all-features -- -D warnings"))?;
    // These few tests are compiled sooner than they would run faster.
    let unoptimized = "--config profile.test.package.tallygate.opt-level=0";
    let tests = format!("test {unoptimized} -p tallygate --lib system::");
    step::run("tests of the seam", &mut with_flags(&tests))?;
    step::run("tests of the world", &mut with_flags("test --release -p tallygate-world --lib"))?;
    SEEDS.iter().try_for_each(|(topology, seeds)| run(&["--topology", topology, "--seeds", seeds]))?;
    check_planted()?;
    step::run("build the world for debugging", &mut with_flags("build -p tallygate-world --bin tallygate-world"))?;
    step::announce("digests");
    let [debug, release] = ["debug", "release"].map(digests);
    if debug? == release? { Ok(()) } else { Err("a seed has two histories: one of each build".to_owned()) }
}

fn digests(profile: &str) -> Result<Vec<u8>, String> {
    let mut command = Command::new(program(profile));
    let output = command.args(["--digests", "--seeds", SEEDS_TWICE]).output();
    let output = output.map_err(|error| format!("cannot run the world: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err("a world fails: play it by `cargo xtask world`".to_owned())
    }
}

fn with_flags(words: &str) -> Command {
    cargo_with_flags(words, FLAGS, FOLDER)
}

fn program(profile: &str) -> PathBuf {
    step::target().join(FOLDER).join(profile).join("tallygate-world")
}
