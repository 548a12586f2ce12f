//! The calls of a file, and how much of it was read.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

/// A reader of the calls, which counts its bytes.
pub(super) struct Calls {
    input: Box<dyn Read>,
    way: Way,
}

/// How much of the calls was read, in bytes.
#[derive(Clone, Default)]
pub(super) struct Way {
    read: Rc<Cell<u64>>,
    /// `None` if it is not known.
    length: Option<u64>,
}

impl Calls {
    pub(super) fn of_file(file: File) -> Self {
        // A pipe has no length.
        let length = file.metadata().ok().map(|known| known.len()).filter(|&length| length > 0);
        Self { input: Box::new(file), way: Way { length, ..Way::default() } }
    }

    pub(super) fn of_stdin() -> Self {
        Self { input: Box::new(io::stdin()), way: Way::default() }
    }

    /// Returns a clone that sees how much is read later.
    pub(super) fn way(&self) -> Way {
        self.way.clone()
    }
}

impl Read for Calls {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read(buffer)?;
        self.way.read.set(self.way.read.get() + bytes as u64);
        Ok(bytes)
    }
}

impl Way {
    /// Returns how much was read, from 0 to 1, if that is known.
    #[allow(clippy::cast_precision_loss, reason = "it is shown in percent")]
    pub(super) fn share(&self) -> Option<f64> {
        self.length.map(|length| self.read.get() as f64 / length as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_much_was_read_is_known_of_a_file() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"time,subject").unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let mut calls = Calls::of_file(file);
        let way = calls.way();
        assert_eq!(way.share(), Some(0.0));
        calls.read_exact(&mut [0; 6]).unwrap();
        assert_eq!(way.share(), Some(0.5));
        assert_eq!(Calls::of_stdin().way().share(), None);
    }
}
