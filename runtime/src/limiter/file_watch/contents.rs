//! What a file has at one moment.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// The longest file that is read.
const MOST_BYTES: u64 = 4 << 20;

/// The text of a file, or why it cannot be read.
pub(super) type Contents = Result<String, (io::ErrorKind, String)>;

pub(super) fn read(path: &Path) -> Contents {
    text(path).map_err(|error| (error.kind(), error.to_string()))
}

fn text(path: &Path) -> io::Result<String> {
    // To open a pipe waits for a writer, who may never come.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut text = String::new();
    let length = File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    let is_too_long = || io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 4 MiB");
    if length as u64 > MOST_BYTES { Err(is_too_long()) } else { Ok(text) }
}
