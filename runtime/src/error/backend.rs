//! A backend that cannot decide.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use super::setting::Setting;
use crate::bounds::shown_message;

/// The backend did not decide in time, or answered with an error.
///
/// The text is for operators. It includes the text of the [`source`](StdError::source), if there is one, and names
/// neither subjects nor passwords. Clones share text and source.
#[derive(Clone)]
pub struct BackendError {
    inner: Arc<BackendErrorInner>,
    /// Whether the call was certainly not executed: it was not sent, or was sent back.
    is_refusal: bool,
}

struct BackendErrorInner {
    kind: BackendErrorKind,
    text: Cow<'static, str>,
    /// The setting whose name ends the text, and where the name begins.
    setting: Option<(Setting, usize)>,
    source: Option<SharedSource>,
}

type SharedSource = Arc<dyn StdError + Send + Sync>;

/// The kind of a [`BackendError`]: whether it may pass by itself, or somebody has to change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackendErrorKind {
    /// The backend cannot be reached, or cannot decide now: it is down, starting, full, overloaded, or about to be
    /// replaced. Later calls may be decided.
    Away,
    /// The setup or the call is mistaken: a password, a permission, a key that holds something else, a server of the
    /// wrong kind. No call like this one is decided until somebody changes that.
    Wrong,
    /// The program is mistaken: the call lacks a value of its context or one of its subjects, its policy is refused, or
    /// it is made in a place where it cannot work. Every such call fails until the code is changed.
    Misuse,
    /// The call lacks a value of its context that the limit counts by and that other calls have, such as the user of a
    /// request. The backend was not asked, and nothing is broken: the caller has to change the call.
    Unidentified,
    /// The backend answered with an error that this version does not know: it may be away, or the setup mistaken.
    Unknown,
}

impl BackendError {
    /// Returns the error for a mistaken setup or call.
    pub(crate) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self::of(BackendErrorKind::Wrong, text, None)
    }

    pub(crate) fn misuse(text: impl Into<Cow<'static, str>>) -> Self {
        Self::of(BackendErrorKind::Misuse, text, None)
    }

    pub(crate) fn unidentified(text: impl Into<Cow<'static, str>>) -> Self {
        Self::of(BackendErrorKind::Unidentified, text, None)
    }

    pub(crate) fn away(text: impl Into<Cow<'static, str>>) -> Self {
        Self::of(BackendErrorKind::Away, text, None)
    }

    /// An error whose text includes that of its source.
    pub(crate) fn with_source(
        kind: BackendErrorKind,
        text: impl Into<Cow<'static, str>>,
        source: impl StdError + Send + Sync + 'static,
    ) -> Self {
        Self::of(kind, text, Some(Arc::new(source)))
    }

    fn of(kind: BackendErrorKind, text: impl Into<Cow<'static, str>>, source: Option<SharedSource>) -> Self {
        Self {
            inner: Arc::new(BackendErrorInner { kind, text: shown_message(text.into()), setting: None, source }),
            is_refusal: false,
        }
    }

    /// Returns this error with the name of the setting at the end of its text.
    #[cfg(feature = "tls")]
    pub(crate) fn naming(self, setting: Setting, name: &str) -> Self {
        let (kind, before) = (self.kind(), &self.inner.text);
        let inner = BackendErrorInner {
            kind,
            text: format!("{before}{name}").into(),
            setting: Some((setting, before.len())),
            source: self.inner.source.clone(),
        };
        Self { inner: Arc::new(inner), ..self }
    }

    /// Returns an error of this kind with a longer text.
    pub(crate) fn with_text(&self, text: impl Into<Cow<'static, str>>) -> Self {
        Self::of(self.kind(), text, None)
    }

    /// Returns this error as one of a call that was not executed.
    pub(crate) fn into_refusal(self) -> Self {
        Self { is_refusal: true, ..self }
    }

    /// Returns this error as the answer to a question that every server of the right kind can answer: an unknown error is
    /// then a mistake.
    pub(crate) fn into_known(self) -> Self {
        match self.kind() {
            BackendErrorKind::Unknown => Self::with_source(BackendErrorKind::Wrong, self.to_string(), self),
            _ => self,
        }
    }

    /// Returns the error to report after two attempts: this one if it is a mistake, or else the later one.
    pub(crate) fn or_mistake(self, later: Self) -> Self {
        if self.kind() == BackendErrorKind::Wrong { self } else { later }
    }

    pub(crate) fn is_refusal(&self) -> bool {
        self.is_refusal
    }

    /// The setting whose name ends the text, and what is before the name.
    pub(super) fn setting(&self) -> Option<(&str, Setting)> {
        let (setting, at) = self.inner.setting?;
        Some((self.inner.text.get(..at)?, setting))
    }

    /// Returns whether waiting may help, or somebody has to change something.
    #[must_use]
    pub fn kind(&self) -> BackendErrorKind {
        self.inner.kind
    }
}

/// Two errors are equal if their texts are.
impl PartialEq for BackendError {
    fn eq(&self, other: &Self) -> bool {
        self.inner.text == other.inner.text
    }
}

impl Eq for BackendError {}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.text)
    }
}

tallygate_rules::__debug_by_display!(BackendError);

impl StdError for BackendError {
    /// Returns the error of the client library, of the system or of the policy that led to this one, if there is one.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_an_error_share_its_text_and_its_source() {
        let cause = std::io::Error::other("refused");
        let error = BackendError::with_source(BackendErrorKind::Away, "redis: refused", cause);
        let clone = error.clone();
        assert!(Arc::ptr_eq(&error.inner, &clone.inner));
        assert_eq!(clone.source().unwrap().to_string(), "refused");
        assert_eq!(clone.kind(), BackendErrorKind::Away);
        assert_eq!(format!("{clone:?}"), "redis: refused");
        assert!(BackendError::new("redis: no answer within the deadline").source().is_none());
    }
}
