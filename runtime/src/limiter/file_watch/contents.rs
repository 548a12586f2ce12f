//! The contents of a file at one moment.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use crate::bounds::FILE_BYTES;

/// The text of a file, or why it cannot be read.
pub(super) type Contents = Result<String, (io::ErrorKind, String)>;

pub(super) fn read(path: &Path) -> Contents {
    text(path).map_err(|error| (error.kind(), error.to_string()))
}

fn text(path: &Path) -> io::Result<String> {
    // Opening a pipe waits for a writer, who may never come.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > FILE_BYTES {
        let message = format!("it is longer than {} MiB", FILE_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8; save it as UTF-8"))
}
