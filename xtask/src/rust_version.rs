//! The oldest Rust that the manifest states: what users build, builds with it.

use std::fs;
use std::process::Command;

use crate::step::{self, Outcome};

/// Builds with the toolchain of that version, which is installed where rustup can fetch it.
pub(crate) fn run() -> Outcome {
    let manifest = fs::read_to_string(step::root().join("Cargo.toml"));
    let manifest = manifest.map_err(|error| format!("cannot read Cargo.toml: {error}"))?;
    let stated = stated(&manifest).ok_or("Cargo.toml states no `rust-version`")?;
    let toolchain = format!("{stated}.0");
    if !is_installed(&toolchain) && !install(&toolchain) {
        step::skip(&format!("build with Rust {stated}"), "rustup cannot fetch it");
        return Ok(());
    }
    let build = step::target().join("rust-version");
    // The tests hold the expansions of the attribute, in all shapes.
    for what in ["-p tallygate --all-features", "-p tallygate --no-default-features", "-p tallygate-tests --tests"] {
        let mut check = rustup(&format!("run {toolchain} cargo check --locked {what} --target-dir"));
        step::run(&format!("build with Rust {stated}: {what}"), check.arg(&build))?;
    }
    Ok(())
}

fn stated(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'))
}

fn is_installed(toolchain: &str) -> bool {
    step::output(&mut rustup(&format!("run {toolchain} cargo --version"))).is_ok()
}

fn install(toolchain: &str) -> bool {
    let install = format!("toolchain install {toolchain} --profile minimal --no-self-update");
    step::run(&format!("install Rust {toolchain}"), &mut rustup(&install)).is_ok()
}

fn rustup(words: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(words.split_whitespace()).current_dir(step::root());
    // What the cargo that runs this program set for itself.
    for name in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC"] {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stated_version_is_read_from_the_manifest() {
        assert_eq!(stated("edition = \"2024\"\nrust-version = \"1.88\"\n"), Some("1.88"));
        assert_eq!(stated("rust-version.workspace = true"), None);
    }
}
