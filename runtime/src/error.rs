//! The errors: a set-up that cannot be used, and a backend that cannot decide.

use std::fmt;
use std::sync::Arc;

use tallygate_rules::RuleError;

/// A limiter or a policy that cannot be used as it was set up.
///
/// The text names the setting and the remedy. It never holds a password: of a URL it shows host and port at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// Gathers the mistakes of one policy into one error.
    pub(crate) fn rules(policy: &str, mistakes: &[RuleError]) -> Self {
        let texts: Vec<_> = mistakes
            .iter()
            .map(|mistake| match mistake.rule() {
                Some(position) => format!("rule {position}: {mistake}"),
                None => mistake.to_string(),
            })
            .collect();
        Self::new(format!("policy `{policy}`: {}", texts.join("; ")))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The backend did not decide in time, or answered with an error.
///
/// The text is for operators; it names neither subjects nor passwords.
#[derive(Clone, Debug)]
pub struct BackendError {
    detail: Arc<str>,
}

impl BackendError {
    pub(crate) fn new(detail: impl Into<Arc<str>>) -> Self {
        Self { detail: detail.into() }
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for BackendError {}
