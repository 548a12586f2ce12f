//! The latest readings of a file.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use crate::bounds::FILE_BYTES;

pub(super) struct Readings {
    /// The contents that were applied, held back or refused last.
    pub(super) known: Contents,
    /// The number of readings since then, if all were equal.
    unchanged: u32,
    /// The contents that the last reading found, if they differ from the known ones.
    changing: Option<Contents>,
}

/// A reading, compared with earlier ones.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// The reading equals the known contents, as this many readings in a row do.
    Known(u32),
    /// The reading differs from the one before: the file may be in the middle of a change.
    Changing,
    /// The file has changed: two equal readings in a row differ from the known contents.
    Changed,
}

impl Readings {
    pub(super) fn new(known: Contents) -> Self {
        Self { known, unchanged: 0, changing: None }
    }

    pub(super) fn note(&mut self, contents: Contents) -> Reading {
        let earlier = self.changing.take();
        if contents == self.known {
            self.unchanged = self.unchanged.saturating_add(1);
            return Reading::Known(self.unchanged);
        }
        self.unchanged = 0;
        if earlier.as_ref() == Some(&contents) {
            self.known = contents;
            Reading::Changed
        } else {
            self.changing = Some(contents);
            Reading::Changing
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_when_two_readings_in_a_row_are_equal() {
        let mut readings = Readings::new(Ok("old".to_owned()));
        let mut read = |text: &str| readings.note(Ok(text.to_owned())) == Reading::Changed;
        assert!(!read("old") && !read("n") && !read("new") && read("new") && !read("new"));
        assert!(!read("other") && !read("new") && !read("other") && read("other"));
        let missing = || Err((io::ErrorKind::NotFound, "gone".to_owned()));
        let mut miss = || readings.note(missing());
        assert_eq!([miss(), miss(), miss()], [Reading::Changing, Reading::Changed, Reading::Known(1)]);
    }

    #[test]
    fn readings_are_counted_from_the_last_that_differed() {
        let mut readings = Readings::new(Ok("old".to_owned()));
        let mut read = |text: &str| readings.note(Ok(text.to_owned()));
        assert_eq!([read("old"), read("old"), read("new")], [Reading::Known(1), Reading::Known(2), Reading::Changing]);
        assert_eq!([read("old"), read("old")], [Reading::Known(1), Reading::Known(2)]);
    }
}
