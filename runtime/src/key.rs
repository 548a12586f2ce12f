//! Rendering and escaping: from values to a subject, from a subject to the key of its tally.
//!
//! Distinct values never share a key: every byte of a value that is not in [`is_plain`] is percent-encoded, so whatever
//! stands between two values (`:` for one) never comes from a value.
//!
//! A key is `{prefix}:{policy}{layout}:{subject}` and has at most [`KEY_BYTES`].

use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use arrayvec::ArrayString;
use blake2::{
    Blake2s, Digest,
    digest::consts::{U4, U16},
};
use tallygate_rules::is_plain;

/// The most bytes a subject takes within a key; a longer one ends in a digest of the whole.
const SUBJECT_BYTES: usize = 100;
/// The most bytes the name of a policy takes within a key; a longer one ends in a digest of the whole.
const NAME_BYTES: usize = 55;
/// The bytes of an equals sign and a digest of which of the policy's subjects it is, unless that is the main one.
const LABEL_BYTES: usize = 9;
/// The most bytes of a slash and the name of the tally's layout.
pub(crate) const LAYOUT_BYTES: usize = 9;
/// The most bytes of a limiter's prefix.
pub(crate) const PREFIX_BYTES: usize = 25;
/// The most bytes of a key, its two colons included.
const KEY_BYTES: usize = PREFIX_BYTES + 1 + NAME_BYTES + LABEL_BYTES + LAYOUT_BYTES + 1 + SUBJECT_BYTES;
/// Stands before a digest. No value and no literal can contain it, so a digest is never mistaken for a value.
const DIGEST_MARK: char = '!';
/// The digest's 128 bits in hexadecimal.
const DIGEST_BYTES: usize = 32;

/// A subject as it stands in keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Short(ArrayString<SUBJECT_BYTES>);

impl Deref for Short {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

/// Says nothing of the values, which may be personal.
impl fmt::Debug for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Short").finish_non_exhaustive()
    }
}

/// Whom a rule counts: the rendered key, like `sms:13800000000`.
///
/// A subject is made of values, which are escaped, so that distinct values never make one subject. One that is short
/// lives on the stack; one that is long ends in a 128-bit digest of the whole.
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
    text: Short,
    /// The whole text, once it is longer than that.
    spilled: Option<String>,
}

impl Subject {
    /// Returns the subject of a policy that counts all calls together.
    #[inline]
    #[must_use]
    pub fn everyone() -> Self {
        Self { text: Short(ArrayString::new()), spilled: None }
    }

    /// Returns a subject of one value.
    #[must_use]
    pub fn of(value: impl fmt::Display) -> Self {
        let mut subject = Self::everyone();
        subject.push_value(&value);
        subject
    }

    /// Adds a value, behind a colon.
    #[must_use]
    pub fn and(mut self, value: impl fmt::Display) -> Self {
        self.push_literal(":");
        self.push_value(&value);
        self
    }

    /// Adds text as it is: printable ASCII without `%` and `!`, which only escapes and digests contain.
    #[inline]
    pub(crate) fn push_literal(&mut self, text: &str) {
        match &mut self.spilled {
            Some(spilled) => spilled.push_str(text),
            None if self.text.0.try_push_str(text).is_ok() => {}
            None => self.spill(text),
        }
    }

    #[cold]
    fn spill(&mut self, text: &str) {
        self.spilled = Some(format!("{}{text}", self.text.0));
    }

    /// Adds a value, escaped.
    pub(crate) fn push_value(&mut self, value: &(impl fmt::Display + ?Sized)) {
        // Only the value's own `Display` can fail; what it wrote until then is its rendering.
        let _ = write!(Escaped(self), "{value}");
    }

    /// The subject as it stands in keys, unless that is yet to be shortened.
    #[inline]
    pub(crate) fn whole(&self) -> Option<&Short> {
        self.spilled.is_none().then_some(&self.text)
    }

    pub(crate) fn short(&self) -> Short {
        self.spilled.as_ref().map_or(self.text, |spilled| Short(shorten(spilled)))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

/// Says nothing of the values, which may be personal.
impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").finish_non_exhaustive()
    }
}

impl PartialEq for Subject {
    fn eq(&self, other: &Self) -> bool {
        self.short() == other.short()
    }
}

impl Eq for Subject {}

impl Hash for Subject {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.short().hash(state);
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

/// Percent-encodes what is written to it on its way into a subject.
struct Escaped<'a>(&'a mut Subject);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Most values are plain, and this is quicker to find out than what is not.
        if text.bytes().all(is_plain) {
            self.0.push_literal(text);
            return Ok(());
        }
        let mut plain = 0;
        for (at, special) in text.char_indices().filter(|(_, c)| !(c.is_ascii() && is_plain(*c as u8))) {
            self.0.push_literal(&text[plain..at]);
            plain = at + special.len_utf8();
            for byte in text[at..plain].bytes() {
                self.0.push_literal(&percent(byte));
            }
        }
        self.0.push_literal(&text[plain..]);
        Ok(())
    }
}

fn percent(byte: u8) -> ArrayString<3> {
    let mut text = ArrayString::new();
    // Three characters fit.
    let _ = write!(text, "%{byte:02X}");
    text
}

/// Cuts a text to `N` bytes, of which the last are a digest of the whole.
fn shorten<const N: usize>(text: &str) -> ArrayString<N> {
    let mut short = ArrayString::new();
    let keep = N.saturating_sub(DIGEST_BYTES + DIGEST_MARK.len_utf8());
    // Everything below fits by this choice of `keep`; texts are ASCII, so any cut is between characters.
    short.push_str(text.get(..keep).unwrap_or_default());
    short.push(DIGEST_MARK);
    for byte in Blake2s::<U16>::digest(text.as_bytes()) {
        let _ = write!(short, "{byte:02x}");
    }
    short
}

/// Escapes the name of a policy as it stands in its keys.
pub(crate) fn policy_segment(name: &str) -> String {
    let mut subject = Subject::of(name);
    let whole = subject.spilled.take().unwrap_or_else(|| subject.text.to_string());
    if whole.len() <= NAME_BYTES { whole } else { shorten::<NAME_BYTES>(&whole).to_string() }
}

/// Thirty-two bits of a text's digest.
pub(crate) fn digest32(text: &str) -> u32 {
    Blake2s::<U4>::digest(text.as_bytes()).iter().fold(0, |bits, &byte| bits << 8 | u32::from(byte))
}

/// The key of a tally.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(ArrayString<KEY_BYTES>);

impl Key {
    /// Joins a limiter's prefix, a policy's [segment](policy_segment) and a subject.
    pub(crate) fn new(prefix: &str, policy: &str, subject: &Short) -> Self {
        let mut key = ArrayString::new();
        // Each part has its bounded share of the key, so all of them fit.
        for part in [prefix, ":", policy, ":", subject] {
            key.push_str(part);
        }
        Self(key)
    }

    #[cfg(any(feature = "redis", test))]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Says nothing of the values, which may be personal.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(prefix: &str, policy: &str, subject: &Subject) -> String {
        Key::new(prefix, &policy_segment(policy), &subject.short()).as_str().to_owned()
    }

    #[test]
    fn a_key_has_these_exact_bytes() {
        assert_eq!(key("tallygate", "sms.send", &Subject::of("sms").and(138)), "tallygate:sms.send:sms:138");
        assert_eq!(key("app", "a::b", &Subject::everyone()), "app:a%3A%3Ab:");
        assert_eq!(key("app", "p", &Subject::of("{a}:/%!é ")), "app:p:%7Ba%7D%3A%2F%25%21%C3%A9%20");
        assert_eq!(key("app", "p", &Subject::of("A-Za_z0.9@+~")), "app:p:A-Za_z0.9@+~");
    }

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
    fn no_key_is_longer_than_200_bytes() {
        let prefix = "p".repeat(PREFIX_BYTES);
        let policy = policy_segment(&"::".repeat(500)) + "=01234567/01234567";
        let key = Key::new(&prefix, &policy, &Subject::of("é".repeat(10_000)).short());
        assert_eq!((key.as_str().len(), KEY_BYTES), (200, 200));
    }

    #[test]
    fn an_empty_value_is_a_value_like_any_other() {
        assert_ne!(Subject::of("a").and(""), Subject::of("a"));
        assert_ne!(Subject::of("").and("a"), Subject::of("a").and(""));
    }

    #[test]
    fn debug_output_keeps_the_values_to_itself() {
        let subject = Subject::of("13800000000");
        assert!(!format!("{subject:?} {:?}", subject.short()).contains("138"));
    }
}
