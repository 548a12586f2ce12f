//! A backend that cannot decide.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// The backend did not decide in time, or answered with an error.
///
/// The text is for operators. It includes the text of the [`source`](StdError::source), if there is one, and names
/// neither subjects nor passwords. Clones share text and source.
#[derive(Clone)]
pub struct BackendError {
    inner: Arc<Inner>,
}

struct Inner {
    text: Cow<'static, str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl BackendError {
    pub(crate) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { inner: Arc::new(Inner { text: text.into(), source: None }) }
    }

    /// An error whose text includes that of its source.
    pub(crate) fn with_source(
        text: impl Into<Cow<'static, str>>,
        source: impl StdError + Send + Sync + 'static,
    ) -> Self {
        Self { inner: Arc::new(Inner { text: text.into(), source: Some(Box::new(source)) }) }
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

impl fmt::Debug for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BackendError").field(&self.inner.text).finish()
    }
}

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
        let error = BackendError::with_source("redis: refused", std::io::Error::other("refused"));
        let clone = error.clone();
        assert!(Arc::ptr_eq(&error.inner, &clone.inner));
        assert_eq!(clone.source().unwrap().to_string(), "refused");
        assert_eq!(format!("{clone:?}"), "BackendError(\"redis: refused\")");
        assert!(BackendError::new("redis: no answer within the deadline").source().is_none());
    }
}
