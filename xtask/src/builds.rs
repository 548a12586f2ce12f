//! The library as its users build it: with some of its features, with an older Rust, with older dependencies.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use crate::feature_sets;
use crate::package::LIBRARY;
use crate::step::{self, Outcome};

/// The oldest Rust that the manifest states.
const RUST_VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// Lints the runtime with sets of its features, without its tests, which need other crates. One set keeps one core busy, so two
/// of them are linted beside each other, in folders of their own.
pub(crate) fn features() -> Outcome {
    let manifest = step::read("runtime/Cargo.toml")?;
    let sets = feature_sets::sets(&feature_sets::features(&manifest))?;
    step::timed(&format!("{} sets of features", sets.len()), || {
        let next = AtomicUsize::new(0);
        let lint = |folder: PathBuf| -> Outcome {
            let next = || sets.get(next.fetch_add(1, Ordering::Relaxed));
            std::iter::from_fn(next).try_for_each(|set| lint_with(set, &folder))
        };
        thread::scope(|scope| {
            let beside = scope.spawn(|| lint(step::target().join("features")));
            let own = lint(step::target());
            let beside = beside.join().map_err(|_| "the lints of features panicked".to_owned())?;
            own.and(beside)
        })
    })
}

fn lint_with(features: &str, folder: &Path) -> Outcome {
    let mut clippy = step::cargo("clippy --quiet -p tallygate --no-default-features --features");
    // What is async for the sake of Redis stays so without it.
    let lints = ["-D", "warnings", "-A", "clippy::unused_async", "-A", "clippy::unused_self"];
    clippy.arg(features).arg("--target-dir").arg(folder).arg("--").args(lints);
    step::output(&mut clippy).map(drop)
}

/// Builds with the oldest Rust, which is installed where rustup can fetch it.
pub(crate) fn rust_version() -> Outcome {
    let title = format!("build with Rust {RUST_VERSION}");
    let toolchain = format!("{RUST_VERSION}.0");
    let is_installed = step::output(&mut rustup(&format!("run {toolchain} cargo --version"))).is_ok();
    let install = format!("toolchain install {toolchain} --profile minimal --no-self-update");
    if !is_installed && step::run(&format!("install Rust {toolchain}"), &mut rustup(&install)).is_err() {
        step::skip(&title, "rustup cannot fetch it");
        return Ok(());
    }
    let build = step::target().join("rust-version");
    // The tests hold the expansions of the attribute, in all shapes. They are checked together with the library, so that what
    // both depend on is checked once.
    let together = "-p tallygate -p tallygate-tests --all-features --lib --test *";
    for what in [together, "-p tallygate --no-default-features"] {
        let mut check = rustup(&format!("run {toolchain} cargo check --locked {what} --target-dir"));
        step::run(&format!("{title}: {what}"), check.arg(&build))?;
    }
    Ok(())
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

/// Builds a copy of the library with the lowest version of each direct dependency that the manifests allow.
pub(crate) fn minimal_versions() -> Outcome {
    let folder = step::target().join("minimal-versions");
    let workspace = folder.join("workspace");
    copy_library(&workspace)?;
    let mut update = step::cargo("update --quiet -Z direct-minimal-versions");
    // The option is for nightly compilers only; it has nothing to do with what is built.
    step::run("choose minimal versions", update.env("RUSTC_BOOTSTRAP", "1").current_dir(&workspace))?;
    let mut check = step::cargo("check -p tallygate --all-features --target-dir");
    step::run("build with minimal versions", check.arg(folder.join("build")).current_dir(&workspace))
}

/// Copies the crates of the library into a workspace of their own.
fn copy_library(workspace: &Path) -> Outcome {
    let unwritable = |error| format!("cannot write {}: {error}", workspace.display());
    let _ = fs::remove_dir_all(workspace);
    fs::create_dir_all(workspace).map_err(unwritable)?;
    let mut copy = Command::new("cp");
    // The lock, too: of all versions, only those of direct dependencies are to change.
    step::output(copy.arg("-R").args(LIBRARY).arg("Cargo.lock").arg(workspace).current_dir(step::root()))?;
    let manifest = manifest_of_library(&step::read("Cargo.toml")?);
    fs::write(workspace.join("Cargo.toml"), manifest).map_err(unwritable)
}

/// Returns the manifest of the workspace with fewer members.
fn manifest_of_library(manifest: &str) -> String {
    let rest = manifest.split_once("\n[workspace.package]").unwrap_or_default().1;
    format!("[workspace]\nresolver = \"3\"\nmembers = {LIBRARY:?}\n\n[workspace.package]{rest}")
}

#[test]
fn the_manifest_of_the_library_has_its_members_and_all_else() {
    let text =
        "[workspace]\nresolver = \"3\"\nmembers = [\n    \"rules\",\n    \"tests\",\n]\n\n[workspace.package]\nversion";
    let members = "members = [\"rules\", \"lua\", \"macros\", \"runtime\"]";
    let expected = format!("[workspace]\nresolver = \"3\"\n{members}\n\n[workspace.package]\nversion");
    assert_eq!(manifest_of_library(text), expected);
}
