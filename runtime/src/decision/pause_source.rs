//! Who has said a pause, and a pause as operators see it.

use std::time::Duration;

use arrayvec::ArrayString;

use crate::bounds::is_unseen;

/// The most bytes of a source, in a store and on the way there.
pub(crate) const SOURCE_BYTES: usize = 64;

/// How the text of a source begins.
const OPERATOR: &str = "operator ";
const FIELD: &str = "field ";

/// A pause that somebody says: for how long, and by which field of an answer if it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaidPause {
    pub(crate) length: Duration,
    pub(crate) field: Option<&'static str>,
}

impl From<Duration> for SaidPause {
    fn from(length: Duration) -> Self {
        Self { length, field: None }
    }
}

/// Who has said a pause: an operator, or a field of an answer. Empty if that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PauseSource(ArrayString<SOURCE_BYTES>);

impl PauseSource {
    pub(crate) fn operator(name: &str) -> Self {
        Self::new(OPERATOR, name)
    }

    pub(crate) fn field(name: &str) -> Self {
        Self::new(FIELD, name)
    }

    /// A name that is too long is cut. What is not visible is left out, because another program may have written it.
    fn new(beginning: &str, name: &str) -> Self {
        let mut text = ArrayString::new();
        for character in beginning.chars().chain(name.chars().filter(|character| !is_unseen(*character))) {
            if text.try_push(character).is_err() {
                break;
            }
        }
        Self(text)
    }

    /// Reads what is stored. What no process writes says nothing.
    #[cfg(feature = "redis")]
    pub(crate) fn read(stored: &[u8]) -> Self {
        let text = String::from_utf8_lossy(stored);
        let named = |beginning: &'static str| text.strip_prefix(beginning).map(|name| Self::new(beginning, name));
        named(OPERATOR).or_else(|| named(FIELD)).unwrap_or_default()
    }

    #[cfg(feature = "redis")]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A pause of a subject: see [`Check::pause_status`](crate::Check::pause_status).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseStatus {
    left: Duration,
    source: PauseSource,
}

impl PauseStatus {
    pub(crate) fn new(left: Duration, source: PauseSource) -> Self {
        Self { left, source }
    }

    /// Returns how long the pause still lasts: zero once it is over, while one call at a time is tried.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.left
    }

    /// Returns the operator who has said it, if the [context](crate::context) named one. A long name is cut at 55 bytes.
    #[must_use]
    pub fn operator(&self) -> Option<&str> {
        self.source.0.strip_prefix(OPERATOR)
    }

    /// Returns the field of the answer that has said it, like `retry-after`, if `client::pace` heard it.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.source.0.strip_prefix(FIELD)
    }
}

#[cfg(all(test, feature = "redis"))]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_is_stored_is_read_as_it_was_and_anything_else_says_nothing() {
        for source in [PauseSource::operator("zoe b."), PauseSource::field("retry-after"), PauseSource::default()] {
            assert_eq!(PauseSource::read(source.as_str().as_bytes()), source);
        }
        for other in [&b"zoe"[..], b"\xff\xfe", b"operator", b"\0\0"] {
            assert_eq!(PauseSource::read(other), PauseSource::default());
        }
    }

    #[test]
    fn a_long_name_is_cut_between_characters_and_controls_no_terminal() {
        assert_eq!(PauseSource::operator(&"日".repeat(100)).as_str(), format!("operator {}", "日".repeat(18)));
        assert_eq!(PauseSource::read(b"operator z\x1b[2Joe\n").as_str(), "operator z[2Joe");
    }
}
