//! No import runs upward, and none runs in a circle: see [`table`] for the layers.

mod findings;
mod imports;
mod source;
mod table;
#[cfg(test)]
mod tests;

use std::fs;

use self::findings::findings;
use self::source::Source;
use self::table::{CRATES, CrateLayers, Layer};
use crate::step::{self, Outcome};

/// Checks every import of every crate.
pub(crate) fn run() -> Outcome {
    step::announce("layers");
    let all: Vec<_> = CRATES.iter().flat_map(check).collect();
    if all.is_empty() { Ok(()) } else { Err(all.join("\n")) }
}

/// Prints the layers of every crate, highest first, and checks all imports.
pub(crate) fn print() -> Outcome {
    for krate in CRATES.iter().filter(|krate| !krate.layers.is_empty()) {
        println!("{}:", krate.name);
        for Layer { name, purpose, modules } in krate.layers {
            println!("  {:<60}{purpose}", if modules == &[*name] { (*name).to_owned() } else { modules.join(", ") });
        }
    }
    run()
}

fn check(krate: &CrateLayers) -> Vec<String> {
    match Source::read(krate.root, &load) {
        Ok(source) => findings(krate, &source),
        Err(mistake) => vec![mistake],
    }
}

fn load(path: &str) -> Option<String> {
    fs::read_to_string(step::root().join(path)).ok()
}
