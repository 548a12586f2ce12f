//! Tools that cargo installs from the registry into `target/tools`, each in one version.

use std::path::PathBuf;
use std::process::Command;

use crate::step::{self, Outcome};

/// A program from the registry.
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
}

pub(crate) const CARGO_DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };
pub(crate) const CARGO_HACK: Tool = Tool { name: "cargo-hack", version: "0.6.46" };
pub(crate) const CARGO_SEMVER_CHECKS: Tool = Tool { name: "cargo-semver-checks", version: "0.51.0" };

impl Tool {
    /// Returns a command of the tool, written as in a shell. It is installed unless that was done before.
    pub(crate) fn command(&self, words: &str) -> Result<Command, String> {
        let folder = step::target().join("tools").join(format!("{}-{}", self.name, self.version));
        let binary = folder.join("bin").join(self.name);
        if !binary.is_file() {
            self.install(folder)?;
        }
        let mut command = Command::new(binary);
        command.args(words.split_whitespace()).current_dir(step::root());
        Ok(command)
    }

    fn install(&self, folder: PathBuf) -> Outcome {
        // Unoptimised: it runs for seconds, and would build for minutes.
        let mut install = step::cargo("install --quiet --locked --debug");
        install.args([self.name, "--version", self.version, "--root"]).arg(folder);
        // Built in a folder that cargo removes afterwards.
        install.env_remove("CARGO_TARGET_DIR").env("CARGO_PROFILE_DEV_DEBUG", "0");
        step::run(&format!("install {}", self.name), &mut install)
    }
}
