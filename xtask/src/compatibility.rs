//! What users build on still builds: the public items of the last release, compared with those of today.

use std::process::Command;

use crate::step::{self, Outcome};
use crate::tool::CARGO_SEMVER_CHECKS;

/// Compares with the last release in the history of this commit; before the first one, there is nothing to compare with.
pub(crate) fn run() -> Outcome {
    let mut describe = Command::new("git");
    describe.args(["describe", "--tags", "--abbrev=0", "--match", "v*"]).current_dir(step::root());
    let Ok(release) = step::output(&mut describe) else {
        step::skip("compatibility with the last release", "no tag `v*` leads to this commit");
        return Ok(());
    };
    let what = "semver-checks --package tallygate --package tallygate-rules --baseline-rev";
    let mut compare = CARGO_SEMVER_CHECKS.command(what)?;
    step::run("compatibility with the last release", compare.arg(release.trim()))
}
