//! The errors of a body are those that it has without the attribute, at the same places.
//!
//! What the compiler shows for each of both is tested in `ui.rs`.

#![allow(clippy::unwrap_used, reason = "of files that are there, or the test fails")]

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn a_body_has_the_same_errors_at_the_same_places_with_and_without_the_attribute() {
    let plain = files("plain", "rs");
    assert!(plain.len() >= 11, "{plain:?}");
    for plain in plain {
        let limited = Path::new("compiler").join(plain.file_name().unwrap());
        assert_eq!(lines(&plain), lines(&limited), "{}", plain.display());
        assert_eq!(errors(&plain), errors(&limited), "{}", plain.display());
    }
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// Returns the lines of a file, with nothing in place of those about the attribute.
fn lines(path: &Path) -> Vec<Option<String>> {
    let text = fs::read_to_string(path).unwrap();
    let kept = |line: &str| {
        (!line.contains("rate_limit") && !line.starts_with("//") && !line.starts_with("use")).then(|| line.to_owned())
    };
    text.lines().map(kept).collect()
}

/// Returns the messages of the errors that a file is expected to have, and their lines and columns.
fn errors(path: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(path.with_extension("stderr")).unwrap();
    let mut errors = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let (true, Some(place)) = (line.starts_with("error"), lines.peek()) {
            let place = place.split_once(".rs:").map_or("", |(_, place)| place);
            errors.push((line.replace("/compiler/", "/plain/"), place.to_owned()));
        }
    }
    assert!(!errors.is_empty(), "{text}");
    errors
}
