//! The faults that are known to be found, each by a seed: the tables of the README of the world have them.

use std::path::PathBuf;
use std::process::Command;

use super::planted;
use crate::step::{self, Outcome};

/// Where the tables are.
const TABLES: &str = "world/README.md";

/// A row of a table.
struct Found<'t> {
    name: &'t str,
    promise: &'t str,
    /// How many seeds it takes, from 0 on.
    seeds: u64,
}

/// The programs that play faults.
pub(super) struct Programs {
    pub(super) of_scripts: PathBuf,
    pub(super) of_library: PathBuf,
}

/// Plays of each fault the seed that has found it, and looks whether it breaks that promise.
pub(super) fn play(programs: &Programs) -> Outcome {
    let text = step::read(TABLES)?;
    let lost: Vec<_> = rows(&text).filter(|found| !programs.find(found)).map(|found| found.name).collect();
    if lost.is_empty() {
        return Ok(());
    }
    Err(format!(
        "not found by its seed: {}; play `cargo xtask world --planted --topology server --seeds 6000`, and write into \
         {TABLES} what it prints. If a fault is not found at all, a checker or what is played has to change",
        lost.join(", ")
    ))
}

impl Programs {
    fn find(&self, Found { name, promise, seeds }: &Found<'_>) -> bool {
        let mut command = self.command(name);
        command.args(["--topology", "server", "--seeds", "1", "--first", &(seeds - 1).to_string()]);
        step::output(&mut command).is_ok_and(|printed| printed.contains(&format!("| {name} | {promise} |")))
    }

    fn command(&self, name: &str) -> Command {
        if planted::names().any(|own| own == name) {
            return planted::command(&self.of_library, name);
        }
        let mut command = Command::new(&self.of_scripts);
        command.args(["--planted-in-scripts", name]);
        command
    }
}

/// The rows that end with a number of seeds.
fn rows(text: &str) -> impl Iterator<Item = Found<'_>> {
    text.lines().filter_map(|line| {
        let [_, name, promise, seeds, _] = *line.split('|').map(str::trim).collect::<Vec<_>>() else { return None };
        Some(Found { name, promise, seeds: seeds.parse().ok().filter(|seeds| *seeds > 0)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_the_library_has_a_row_with_its_seeds() {
        let text = step::read(TABLES).unwrap();
        let missing: Vec<_> = planted::names().filter(|name| !rows(&text).any(|row| row.name == *name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
