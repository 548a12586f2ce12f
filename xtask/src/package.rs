//! The packages that are published: each is built from what it holds, and holds what it needs.

use std::fs;

use crate::{Outcome, step};

/// In the order in which they depend on each other, each with its folder.
const PUBLISHED: [(&str, &str); 4] =
    [("tallygate-rules", "rules"), ("tallygate-lua", "lua"), ("tallygate-macros", "macros"), ("tallygate", "runtime")];

/// What every package holds, beside its code.
const IN_EACH: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// What lies in the root and, as a copy, in every folder: a package holds only what is inside its folder.
const COPIED: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// Compares the copies of the licences with those in the root.
pub(crate) fn check_licences() -> Outcome {
    step::announce("licences");
    let copies = PUBLISHED.iter().flat_map(|(_, folder)| COPIED.map(|name| (*folder, name)));
    copies.into_iter().try_for_each(|(folder, name)| {
        let copy = format!("{folder}/{name}");
        let equal = read(&copy)? == read(name)?;
        if equal { Ok(()) } else { Err(format!("{copy} is not what {name} is; again by: cp {name} {copy}")) }
    })
}

fn read(file: &str) -> Result<Vec<u8>, String> {
    fs::read(step::root().join(file)).map_err(|error| format!("cannot read {file}: {error}"))
}

/// Packs all at once, as they depend on each other in versions that no registry has yet, and builds what was packed.
pub(crate) fn run() -> Outcome {
    let mut together = step::cargo("package --allow-dirty");
    step::run("package what is published", together.args(PUBLISHED.iter().flat_map(|(package, _)| ["-p", package])))?;
    PUBLISHED.iter().try_for_each(|(package, _)| check_contents(package))
}

fn check_contents(package: &str) -> Outcome {
    let list = step::output(&mut step::cargo(&format!("package --allow-dirty --list -p {package}")))?;
    let holds = |file: &str| list.lines().any(|line| line == file);
    let script = (package == "tallygate-lua").then_some("decide.lua");
    match IN_EACH.into_iter().chain(script).find(|file| !holds(file)) {
        None => Ok(()),
        Some(missing) => Err(format!("the package `{package}` does not hold `{missing}`; it holds:\n{list}")),
    }
}
