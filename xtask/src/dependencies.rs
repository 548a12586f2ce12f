//! The dependencies: whoever adds a crate to the build of users says why, in `docs/dependencies.md`.

use std::fs;

use crate::step::{self, Outcome, cargo, output};

const PAGE: &str = "docs/dependencies.md";

/// Looks every crate of the default build up on the page. It tells of Linux; other systems bring a few more.
pub(crate) fn run() -> Outcome {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    step::announce("dependencies");
    let page = fs::read_to_string(step::root().join(PAGE)).map_err(|error| format!("cannot read {PAGE}: {error}"))?;
    let tree = output(&mut cargo("tree -p tallygate -e normal,build --prefix none --format {p}"))?;
    let crates = tree.lines().filter_map(|line| line.split_whitespace().next());
    match crates.filter(|name| !page.contains(&format!("`{name}`"))).min() {
        None => Ok(()),
        Some(name) => Err(format!("`{name}` is not in {PAGE}; remedy: say there what it is for, or do without it")),
    }
}
