//! Places in the text of a file, and the mistakes that are found there.

use std::ops::Range;

use crate::bounds::MOST_MISTAKES;
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
    /// The number of characters before each block of bytes, so that a column is found fast in a very long line, too.
    characters: Vec<usize>,
    mistakes: Vec<Mistake>,
    /// The number of mistakes that were found. Only the first are kept.
    found: usize,
}

/// The size of a block, in bytes.
const BLOCK: usize = 256;

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let starts = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(starts).collect();
        let behind = text.as_bytes().chunks(BLOCK).scan(0, |characters, block| {
            *characters += characters_in(block);
            Some(*characters)
        });
        let characters = std::iter::once(0).chain(behind).collect();
        Self { text, starts, characters, mistakes: Vec::new(), found: 0 }
    }

    /// Returns how many characters begin before that byte.
    fn characters_before(&self, at: usize) -> usize {
        let block = at / BLOCK;
        let rest = self.text.as_bytes().get(block * BLOCK..at).unwrap_or_default();
        self.characters.get(block).copied().unwrap_or_default() + characters_in(rest)
    }

    /// Returns the place at which a range of bytes starts.
    pub(super) fn place(&self, range: &Range<usize>) -> Place {
        let line = self.starts.partition_point(|&start| start <= range.start);
        let start = line.checked_sub(1).and_then(|index| self.starts.get(index)).copied().unwrap_or(0);
        let at = if range.start <= self.text.len() { range.start } else { start };
        let before = self.characters_before(at).saturating_sub(self.characters_before(start));
        Place { line: line.max(1), column: 1 + before }
    }

    /// Whether the line at that place has this header, and only comments follow it.
    pub(super) fn is_last_header(&self, header: &str, place: Place) -> bool {
        let mut lines = self.text.lines().skip(place.line.saturating_sub(1)).map(str::trim);
        let is_comment = |line: &str| line.is_empty() || line.starts_with('#');
        let rest = lines.next().and_then(|line| line.strip_prefix(header)).map(str::trim_start);
        rest.is_some_and(is_comment) && lines.all(is_comment)
    }

    pub(super) fn report(&mut self, place: Place, message: impl Into<String>) {
        self.found += 1;
        if self.mistakes.len() < MOST_MISTAKES {
            self.mistakes.push(Mistake::new(place, message));
        }
    }

    /// Whether no further mistakes are kept.
    pub(super) fn is_full(&self) -> bool {
        self.mistakes.len() >= MOST_MISTAKES
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
        self.found
    }

    /// Returns the value if nothing was reported.
    pub(super) fn finish<T>(self, value: T) -> Result<T, ConfigError> {
        if self.mistakes.is_empty() { Ok(value) } else { Err(ConfigError::new(self.mistakes)) }
    }
}

/// How many characters begin within these bytes.
fn characters_in(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_long_line_is_found_without_reading_the_line() {
        let text = format!("ab\n{}", "日x".repeat(10_000));
        let lines = Lines::new(&text);
        for at in [3, 6, 7, 256, 258, 1_023, 20_003, text.len()] {
            let at = text.floor_char_boundary(at);
            let Place { line, column } = lines.place(&(at..at));
            assert_eq!((line, column), (2, 1 + text[3..at].chars().count()), "{at}");
        }
        assert_eq!(lines.characters.len(), 1 + text.len().div_ceil(BLOCK));
    }

    #[test]
    fn only_the_first_mistakes_are_kept_and_all_are_counted() {
        let mut lines = Lines::new("");
        (0..2 * MOST_MISTAKES).for_each(|_| lines.report(Place { line: 1, column: 1 }, "mistake"));
        assert_eq!((lines.mistakes(), lines.mistakes.len(), lines.is_full()), (2 * MOST_MISTAKES, MOST_MISTAKES, true));
    }

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
