//! Places in the text of a file, and the mistakes that are found there.

use std::ops::Range;

use crate::error::{ConfigError, Mistake, Place};

/// A value, and its place.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

impl At<&str> {
    pub(super) fn to_owned(&self) -> At<String> {
        At { value: self.value.to_owned(), place: self.place }
    }
}

/// The lines of a file, and the mistakes that were found in it.
pub(super) struct Lines<'t> {
    text: &'t str,
    /// Where each line starts, in bytes.
    starts: Vec<usize>,
    mistakes: Vec<Mistake>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let starts = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(starts).collect(), mistakes: Vec::new() }
    }

    /// Returns the place at which a range of bytes starts.
    pub(super) fn place(&self, range: &Range<usize>) -> Place {
        let line = self.starts.partition_point(|&start| start <= range.start);
        let start = line.checked_sub(1).and_then(|index| self.starts.get(index)).copied().unwrap_or(0);
        let before = self.text.get(start..range.start).unwrap_or_default();
        Place { line: line.max(1), column: 1 + before.chars().count() }
    }

    /// Whether that place is in the line of this header, and only comments are behind it.
    pub(super) fn is_last_header(&self, header: &str, place: Place) -> bool {
        let mut lines = self.text.lines().skip(place.line.saturating_sub(1)).map(str::trim);
        let is_comment = |line: &str| line.is_empty() || line.starts_with('#');
        let rest = lines.next().and_then(|line| line.strip_prefix(header)).map(str::trim_start);
        rest.is_some_and(is_comment) && lines.all(is_comment)
    }

    pub(super) fn report(&mut self, place: Place, message: impl Into<String>) {
        self.mistakes.push(Mistake::new(place, message));
    }

    /// Keeps a value, or reports why there is none.
    pub(super) fn ok_or_report<T, E: ToString>(&mut self, place: Place, read: Result<T, E>) -> Option<T> {
        read.map_err(|why| self.report(place, why.to_string())).ok()
    }

    /// Reads a value, or reports at its place why it cannot be read.
    pub(super) fn read<V, T, E: ToString>(
        &mut self,
        written: At<V>,
        read: impl FnOnce(V) -> Result<T, E>,
    ) -> Option<At<T>> {
        let At { value, place } = written;
        self.ok_or_report(place, read(value)).map(|value| At { value, place })
    }

    /// How many mistakes were reported.
    pub(super) fn mistakes(&self) -> usize {
        self.mistakes.len()
    }

    /// Returns the value if nothing was reported.
    pub(super) fn finish<T>(self, value: T) -> Result<T, ConfigError> {
        if self.mistakes.is_empty() { Ok(value) } else { Err(ConfigError::new(self.mistakes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_line_and_a_column_in_characters_both_from_one() {
        let lines = Lines::new("ab\nd日x\r\n\ny");
        let place = |at| {
            let Place { line, column } = lines.place(&(at..at));
            (line, column)
        };
        assert_eq!([place(0), place(1), place(3), place(7)], [(1, 1), (1, 2), (2, 1), (2, 3)]);
        assert_eq!([place(10), place(11), place(12), place(99)], [(3, 1), (4, 1), (4, 2), (4, 1)]);
    }
}
