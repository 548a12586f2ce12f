//! The packages that are published: each one builds from its own contents, contains what it needs, and still has what its
//! users build on.

use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, process};

use crate::install::{self, CARGO_SEMVER_CHECKS};
use crate::step::{self, Outcome};

/// In the order in which they depend on each other.
const PUBLISHED: [&str; 5] = ["tallygate-rules", "tallygate-lua", "tallygate-macros", "tallygate", "tallygate-cli"];

/// Their folders.
const FOLDERS: [&str; 5] = ["rules", "lua", "macros", "runtime", "cli"];

/// The folders of the library.
pub(crate) const LIBRARY: [&str; 4] = ["rules", "lua", "macros", "runtime"];

/// They lie in the root and, as copies, in every published crate: a package holds only what is inside its folder.
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// What every package contains, beside its code.
const IN_EACH: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Compares the copies of the licences with those in the root.
pub(crate) fn licences() -> Outcome {
    step::announce("copies of the licences");
    for (folder, file) in FOLDERS.iter().flat_map(|folder| LICENCES.map(|file| (folder, file))) {
        let copy = format!("{folder}/{file}");
        if step::read(&copy)? != step::read(file)? {
            return Err(format!("{copy} differs from {file}; remedy: cp {file} {copy}"));
        }
    }
    Ok(())
}

/// Compares the public items with those of the last release in the history of this commit; before the first one, there is
/// nothing to compare with.
pub(crate) fn compatibility() -> Outcome {
    const TITLE: &str = "compatibility with the last release";
    let mut describe = Command::new("git");
    describe.args(["describe", "--tags", "--abbrev=0", "--match", "v*"]).current_dir(step::root());
    let Ok(release) = step::output(&mut describe) else {
        step::skip(TITLE, "no tag `v*` leads to this commit");
        return Ok(());
    };
    let what = "semver-checks --package tallygate --package tallygate-rules --baseline-rev";
    step::run(TITLE, install::tool(CARGO_SEMVER_CHECKS, what)?.arg(release.trim()))
}

/// Packs all of them together, as they depend on versions of each other that no registry has yet, and builds the packages.
pub(crate) fn run() -> Outcome {
    let folder = fresh_folder();
    let mut together = step::cargo("package --allow-dirty --target-dir");
    together.arg(&folder).args(PUBLISHED.iter().flat_map(|package| ["-p", package]));
    let packed = step::run("package what is published", &mut together);
    // Where it cannot be removed, it stays in the folder of temporary files.
    let _ = fs::remove_dir_all(&folder);
    packed?;
    PUBLISHED.into_iter().try_for_each(check_contents)
}

/// Returns a folder that no earlier run had: cargo assumes that a version which it has unpacked never changes, and would
/// build `tallygate` with the other packages of an earlier run.
fn fresh_folder() -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    env::temp_dir().join(format!("tallygate-packages-{}-{}", now.as_secs(), process::id()))
}

fn check_contents(package: &str) -> Outcome {
    let list = step::output(&mut step::cargo(&format!("package --allow-dirty --list -p {package}")))?;
    match IN_EACH.into_iter().find(|file| !list.lines().any(|line| line == *file)) {
        None => Ok(()),
        Some(missing) => Err(format!("the package `{package}` lacks `{missing}`; it contains:\n{list}")),
    }
}
