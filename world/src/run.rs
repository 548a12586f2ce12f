//! One seed: draws a scenario, plays it, checks its history, and shortens what fails.

mod call;
mod ending;
#[cfg(test)]
mod found;
mod note;
mod paced;
mod process;
mod shorten;
mod world;

use std::fmt::Write as _;

use crate::checker::{self, Violation};
use crate::engine::{self, Halt};
use crate::history::{Entry, History};
use crate::net::{self, Attempt};
use crate::topology::Plant;
use crate::workload::{Extent, Scenario, Topology};

pub use self::shorten::shorten;
use self::world::World;

/// What was played.
#[derive(Debug)]
pub struct Played {
    /// The history.
    pub history: Vec<Entry>,
    /// The attempts to connect.
    pub attempts: Vec<Attempt>,
    /// How long it was, in microseconds of virtual time.
    pub virtual_us: u64,
}

/// How a world failed.
#[derive(Debug)]
pub struct Failure {
    /// What was played.
    pub scenario: Scenario,
    /// The history, as far as there is one.
    pub history: Vec<Entry>,
    /// What is wrong.
    pub violation: Violation,
}

/// Draws and plays the world of a seed.
///
/// # Errors
///
/// A promise that was broken, with the history.
pub fn seed(seed: u64, topology: Topology, extent: Extent, plant: &Plant) -> Result<(Scenario, Played), Box<Failure>> {
    let scenario = Scenario::draw(seed, topology, extent);
    let played = scenario_of(&scenario, plant)?;
    Ok((scenario, played))
}

/// Plays a scenario and checks it.
///
/// # Errors
///
/// A promise that was broken, with the history.
pub fn scenario_of(scenario: &Scenario, plant: &Plant) -> Result<Played, Box<Failure>> {
    let history = History::default();
    let played = engine::run(scenario.seed, async {
        let world = World::play(scenario, plant, &history).await;
        ending::look(&world).await;
        (net::take_attempts(), engine::now_us())
    });
    let entries = history.take();
    let (attempts, virtual_us) = match played {
        Ok(ended) => ended,
        Err(halt) => return Err(fail(scenario, entries, halted(halt))),
    };
    match checker::check(scenario, &entries, &attempts) {
        Ok(()) => Ok(Played { history: entries, attempts, virtual_us }),
        Err(violation) => Err(fail(scenario, entries, violation)),
    }
}

fn fail(scenario: &Scenario, history: Vec<Entry>, violation: Violation) -> Box<Failure> {
    Box::new(Failure { scenario: scenario.clone(), history, violation })
}

fn halted(halt: Halt) -> Violation {
    let (Halt::Livelock { now_us: us } | Halt::Deadlock { now_us: us }) = halt;
    Violation { us, promise: "a world comes to its end", how: halt.to_string() }
}

/// A history as a person reads it.
#[must_use]
pub fn text(scenario: &Scenario, history: &[Entry]) -> String {
    let mut text = scenario.to_string();
    for entry in history {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{entry}");
    }
    text
}

/// What tells two histories apart: the same for the same seed.
#[must_use]
pub fn digest(scenario: &Scenario, history: &[Entry]) -> String {
    sha1_smol::Sha1::from(text(scenario, history).as_bytes()).digest().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_one_history_byte_for_byte() {
        let extent = Extent { longest_us: 20_000_000, ..Extent::default() };
        let play = |seed| match super::seed(seed, Topology::Server, extent, &Plant::default()) {
            Ok((scenario, played)) => text(&scenario, &played.history),
            Err(failure) => panic!("{}", failure.violation),
        };
        for seed in 0..5 {
            assert!(play(seed) == play(seed), "seed {seed}");
        }
        assert_ne!(play(0), play(1));
    }
}
