//! The subject of a call, which its rules count.

mod builder;
mod escaping;
pub(crate) mod filters;

use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};

use tallygate_rules::is_printed;

pub use self::builder::{SubjectBuilder, SubjectValue};
use self::escaping::{Bounded, EscapedText};
pub(crate) use self::escaping::{NAME_BYTES, digest32, escape_name, percent_decode, percent_encode};
use crate::error::{BackendError, Error};
use crate::observe::opaque_debug;

/// The most bytes of a subject within a key. A longer subject ends in a digest of the whole.
pub(crate) const SUBJECT_BYTES: usize = 100;

/// The escaped text of a subject in keys.
pub(crate) type SubjectKey = EscapedText<SUBJECT_BYTES>;

/// The subject of a call: the rendered `key`, like `sms:13800000000`. Each subject has a tally of its own.
///
/// The values of a subject are escaped, so that distinct values never make one subject. A short subject lives on the
/// stack. A long one ends in a 128-bit digest of the whole.
///
/// [`of`](Self::of) and [`and`](Self::and) make the subjects of templates whose values are separated by colons.
/// [`Limiter::subject`](crate::Limiter::subject) makes those of any template, filters included.
///
/// # Examples
///
/// ```
/// use tallygate::Subject;
/// assert_eq!(Subject::of("sms").and("13800000000").to_string(), "sms:13800000000");
/// assert_ne!(Subject::of("a:b").and("c"), Subject::of("a").and("b:c"));
/// ```
#[derive(Clone)]
pub struct Subject {
    text: Bounded<SUBJECT_BYTES>,
    /// The reason why calls of the subject cannot be decided: a value is missing.
    mistake: Option<BackendError>,
}

impl Subject {
    /// Returns the subject of a policy that counts all calls together.
    #[inline]
    #[must_use]
    pub fn everyone() -> Self {
        Self { text: Bounded::new(), mistake: None }
    }

    /// Returns the subject with this escaped text, or `None` if no subject has it.
    pub(crate) fn from_escaped(text: &str) -> Option<Self> {
        let is_escaped = text.len() <= SUBJECT_BYTES && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let mut subject = Self::everyone();
        subject.push_literal(text);
        is_escaped.then_some(subject)
    }

    /// Returns the subject that keys and `Display` show as this text: its values are escaped.
    ///
    /// Use it in tools, where people paste subjects. A program makes subjects from values.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is no subject: it has more than 100 bytes, bytes that are not printable ASCII, or a
    /// `%` without two hexadecimal digits in upper case.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::Subject;
    ///
    /// let subject = Subject::of("mail").and("zoë@example.org");
    /// assert_eq!(subject.to_string(), "mail:zo%C3%AB@example.org");
    /// assert_eq!(Subject::from_rendered("mail:zo%C3%AB@example.org")?, subject);
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn from_rendered(text: &str) -> Result<Self, Error> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
        let is_escape = |rest: &str| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(is_digit));
        let mistake = match Self::from_escaped(text) {
            None if text.len() > SUBJECT_BYTES => "it has more than 100 bytes, which none has within a key",
            None => "within a key, bytes other than printable ASCII are written as `%` and two hexadecimal digits",
            Some(_) if !text.split('%').skip(1).all(is_escape) => {
                "within a key, two hexadecimal digits in upper case follow each `%`, which itself is `%25`"
            }
            Some(subject) => return Ok(subject),
        };
        Err(Error::new(format!("this is no subject as it stands in keys: {mistake}")))
    }

    /// Returns a subject of one value.
    #[must_use]
    pub fn of(value: impl fmt::Display) -> Self {
        let mut subject = Self::everyone();
        subject.push_value(&value);
        subject
    }

    /// Adds a value, after a colon.
    #[must_use]
    pub fn and(mut self, value: impl fmt::Display) -> Self {
        self.push_literal(":");
        self.push_value(&value);
        self
    }

    /// Adds text without escaping. It is printable ASCII without `%` and `!`, which only escapes and digests contain.
    #[inline]
    pub(crate) fn push_literal(&mut self, text: &str) {
        self.text.push(text);
    }

    /// Adds text of a template. It escapes `%`, `!` and all bytes that are not printable ASCII.
    pub(crate) fn push_text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let printed = rest.bytes().take_while(|&byte| is_printed(byte)).count();
            let (piece, others) = rest.split_at(if printed > 0 { printed } else { character.len_utf8() });
            if printed > 0 {
                self.push_literal(piece);
            } else {
                piece.bytes().for_each(|byte| self.push_literal(&format!("%{byte:02X}")));
            }
            rest = others;
        }
    }

    /// Adds a value and escapes it.
    pub(crate) fn push_value(&mut self, value: &(impl fmt::Display + ?Sized)) {
        // Only the `Display` of the value can fail. The text that it wrote until then is its rendering.
        let _ = write!(self.text.escaped(), "{value}");
    }

    /// Adds a value that is text, and escapes it.
    #[inline]
    pub(crate) fn push_string(&mut self, value: &str) {
        // Writing to it cannot fail.
        let _ = self.text.escaped().write_str(value);
    }

    /// Makes all calls of the subject fail with this error. An earlier error stays.
    #[cold]
    pub(crate) fn refuse(&mut self, mistake: BackendError) {
        self.mistake.get_or_insert(mistake);
    }

    pub(crate) fn map_mistake(&mut self, change: impl FnOnce(BackendError) -> BackendError) {
        self.mistake = self.mistake.take().map(change);
    }

    pub(crate) fn mistake(&self) -> Option<&BackendError> {
        self.mistake.as_ref()
    }

    /// Returns the escaped text, unless it must be shortened or calls of the subject fail.
    #[inline]
    pub(crate) fn whole(&self) -> Option<&SubjectKey> {
        if self.mistake.is_none() { self.text.whole() } else { None }
    }

    pub(crate) fn key(&self) -> SubjectKey {
        self.text.shortened()
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key())
    }
}

opaque_debug!(Subject);

impl PartialEq for Subject {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Subject {}

impl Hash for Subject {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl From<&str> for Subject {
    fn from(value: &str) -> Self {
        Self::of(value)
    }
}

impl From<String> for Subject {
    fn from(value: String) -> Self {
        Self::of(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_subject_keeps_its_start_and_ends_in_a_digest() {
        let long = "x".repeat(101);
        let text = Subject::of(&long).to_string();
        assert_eq!(text.len(), SUBJECT_BYTES);
        assert!(text.starts_with(&"x".repeat(67)) && text.as_bytes()[67] == b'!');
        assert_ne!(Subject::of(&long), Subject::of("x".repeat(102)));
        assert_eq!(Subject::of("x".repeat(100)).to_string(), "x".repeat(100));
    }

    #[test]
    fn the_digest_of_a_long_subject_has_these_exact_bytes_however_it_is_written() {
        let whole = Subject::of("a").and("é".repeat(300));
        assert_eq!(whole.to_string(), DIGESTED);
        let mut in_parts = Subject::of("a");
        in_parts.push_literal(":");
        for _ in 0..300 {
            in_parts.push_value("é");
        }
        assert_eq!(in_parts.to_string(), DIGESTED);
    }

    const DIGESTED: &str =
        "a:%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A!d2ad057a2e4aa3dec7545e36d0c166fc";

    #[test]
    fn a_subject_is_made_of_its_escaped_text() {
        for subject in [Subject::everyone(), Subject::of("a:b").and("é"), Subject::of("x".repeat(200))] {
            assert_eq!(Subject::from_escaped(&subject.to_string()), Some(subject));
        }
        assert!(Subject::from_escaped("é").is_none() && Subject::from_escaped(&"x".repeat(101)).is_none());
    }

    #[test]
    fn an_empty_value_is_a_value_like_any_other() {
        assert_ne!(Subject::of("a").and(""), Subject::of("a"));
        assert_ne!(Subject::of("").and("a"), Subject::of("a").and(""));
    }

    #[test]
    fn debug_output_leaves_out_the_values() {
        let subject = Subject::of("13800000000");
        assert!(!format!("{subject:?} {:?}", subject.key()).contains("138"));
    }
}
