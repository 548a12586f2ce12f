//! The lowest versions that the manifests allow: the library builds with them.

use std::path::Path;
use std::{fs, io};

use crate::package::LIBRARY;
use crate::step::{self, Outcome};

/// Builds a copy of the library with the lowest version of each direct dependency.
pub(crate) fn run() -> Outcome {
    let folder = step::target().join("minimal-versions");
    let workspace = folder.join("workspace");
    copy(&workspace).map_err(|error| format!("cannot write {}: {error}", workspace.display()))?;
    let mut update = step::cargo("update --quiet -Z direct-minimal-versions");
    // The option is for nightly compilers only; it has nothing to do with what is built.
    step::run("choose minimal versions", update.env("RUSTC_BOOTSTRAP", "1").current_dir(&workspace))?;
    let mut check = step::cargo("check -p tallygate --all-features --target-dir");
    step::run("build with minimal versions", check.arg(folder.join("build")).current_dir(&workspace))
}

/// Copies the crates of the library into a workspace of their own.
fn copy(workspace: &Path) -> io::Result<()> {
    if workspace.exists() {
        fs::remove_dir_all(workspace)?;
    }
    let root = step::root();
    for folder in LIBRARY {
        copy_folder(&root.join(folder), &workspace.join(folder))?;
    }
    // Of all versions, only those of direct dependencies are to change.
    fs::copy(root.join("Cargo.lock"), workspace.join("Cargo.lock"))?;
    fs::write(workspace.join("Cargo.toml"), manifest(&fs::read_to_string(root.join("Cargo.toml"))?))
}

/// Returns the manifest of the workspace with fewer members.
fn manifest(manifest: &str) -> String {
    let is_of_all = |line: &&str| !line.starts_with("members =") && !line.starts_with("default-members =");
    let lines = manifest.lines().filter(is_of_all);
    let members = format!("members = {LIBRARY:?}");
    lines
        .flat_map(|line| [Some(line), (line == "[workspace]").then_some(&*members)])
        .flatten()
        .fold(String::new(), |text, line| text + line + "\n")
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copied_manifest_has_the_published_members_and_all_else() {
        let text = "[workspace]\nresolver = \"3\"\nmembers = [\"rules\", \"tests\"]\n[workspace.package]\n";
        let expected = "[workspace]\nmembers = [\"rules\", \"lua\", \"macros\", \"runtime\"]\nresolver = \"3\"\n[workspace.package]\n";
        assert_eq!(manifest(text), expected);
    }
}
