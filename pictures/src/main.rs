//! Draws the pictures of the documentation from what the library decides, and from what a Prometheus has recorded of it:
//! `cargo xtask pictures`.
//!
//! With `--check`, it writes nothing, and fails if a picture is not the one that it would draw.

mod algorithms;
mod canvas;
mod dashboard;
mod lane;
mod panel;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// The picture that stands in rustdoc, too, and where.
const IN_RUSTDOC: (&str, &str) = ("algorithms.svg", "runtime/src/guide/picture.md");

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(mistake) => {
            eprintln!("{mistake}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let pictures = [("algorithms.svg", algorithms::draw()?), ("dashboard.svg", dashboard::draw()?)];
    let words: Vec<_> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => files(&pictures).try_for_each(|(path, text)| write(&path, &text)),
        ["--check"] => files(&pictures).try_for_each(|(path, text)| check(&path, &text)),
        _ => Err("usage: cargo xtask pictures [--check]".into()),
    }
}

/// The files of the pictures: their paths from the root, and what is in them.
fn files(pictures: &[(&str, String)]) -> impl Iterator<Item = (String, String)> {
    let drawn = pictures.iter().map(|(name, picture)| (format!("docs/pictures/{name}"), picture.clone()));
    let (embedded, path) = IN_RUSTDOC;
    let definitions = pictures.iter().filter(move |(name, _)| *name == embedded);
    drawn.chain(definitions.map(move |(_, picture)| (path.to_owned(), definition(picture))))
}

/// The definition of a link in Markdown that holds the picture itself: rustdoc has no files beside its pages.
fn definition(picture: &str) -> String {
    format!("[picture]: data:image/svg+xml,{}\n", utf8_percent_encode(picture, NON_ALPHANUMERIC))
}

fn write(path: &str, text: &str) -> Result<(), Box<dyn Error>> {
    let path = Path::new(ROOT).join(path);
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    Ok(fs::write(path, text)?)
}

fn check(path: &str, text: &str) -> Result<(), Box<dyn Error>> {
    match fs::read_to_string(Path::new(ROOT).join(path)) {
        // Git may have given the lines other ends.
        Ok(there) if there.replace("\r\n", "\n") == text => Ok(()),
        Ok(_) => Err(format!("{path} is out of date; draw it again by `cargo xtask pictures`").into()),
        Err(error) => Err(format!("{path}: {error}; draw it by `cargo xtask pictures`").into()),
    }
}
