//! The packages that are published: each is built from what it holds, and holds what it needs.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, process};

use crate::step::{self, Outcome};

/// In the order in which they depend on each other.
const PUBLISHED: [&str; 4] = ["tallygate-rules", "tallygate-lua", "tallygate-macros", "tallygate"];

/// Their folders.
pub(crate) const FOLDERS: [&str; 4] = ["rules", "lua", "macros", "runtime"];

/// What every package holds, beside its code.
const IN_EACH: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Packs all at once, as they depend on each other in versions that no registry has yet, and builds what was packed.
pub(crate) fn run() -> Outcome {
    let folder = fresh_folder();
    let mut together = step::cargo("package --allow-dirty --target-dir");
    together.arg(&folder).args(PUBLISHED.iter().flat_map(|package| ["-p", package]));
    let packed = step::run("package what is published", &mut together);
    // Left to the system where it cannot be removed.
    let _ = fs::remove_dir_all(&folder);
    packed?;
    PUBLISHED.into_iter().try_for_each(check_contents)
}

/// A folder that no run had before: cargo believes that a version it has unpacked from a registry never changes, and
/// would build `tallygate` with the other packages of an earlier run.
fn fresh_folder() -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    env::temp_dir().join(format!("tallygate-packages-{}-{}", now.as_secs(), process::id()))
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
