//! The texts of the licences. They lie in the root and, as copies, in every published crate: a package holds only what is
//! inside its folder.

use std::fs;

use crate::package::FOLDERS;
use crate::step::{self, Outcome};

const FILES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// Compares the copies with those in the root.
pub(crate) fn run() -> Outcome {
    step::announce("copies of the licences");
    FOLDERS.iter().flat_map(|folder| FILES.map(|file| (folder, file))).try_for_each(|(folder, file)| {
        let copy = format!("{folder}/{file}");
        let equal = read(&copy)? == read(file)?;
        if equal { Ok(()) } else { Err(format!("{copy} differs from {file}; remedy: cp {file} {copy}")) }
    })
}

fn read(file: &str) -> Result<Vec<u8>, String> {
    fs::read(step::root().join(file)).map_err(|error| format!("cannot read {file}: {error}"))
}
