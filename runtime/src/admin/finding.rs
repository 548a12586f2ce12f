//! A finding about a server.

use std::fmt;

/// A finding about a server, with its remedy.
///
/// It displays as a sentence, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    topic: &'static str,
    level: Level,
    text: String,
    remedy: Option<String>,
}

/// The severity of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Everything is right.
    Ok,
    /// Limits are decided, but may later be lost, late or wrong.
    Warning,
    /// Limits are not decided, or are wrong.
    Problem,
}

impl Finding {
    pub(super) fn new(topic: &'static str, level: Level, text: impl Into<String>) -> Self {
        Self { topic, level, text: text.into(), remedy: None }
    }

    pub(super) fn ok(topic: &'static str, text: impl Into<String>) -> Self {
        Self::new(topic, Level::Ok, text)
    }

    pub(super) fn warning(topic: &'static str, text: impl Into<String>) -> Self {
        Self::new(topic, Level::Warning, text)
    }

    pub(super) fn problem(topic: &'static str, text: impl Into<String>) -> Self {
        Self::new(topic, Level::Problem, text)
    }

    pub(super) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// Returns the topic, in one word: `connection`, `version`, `eviction`, `memory`, `persistence`, `clock`,
    /// `latency`, `permissions`, `script`, `keys`, or `info` if the server refuses to report about itself.
    #[must_use]
    pub fn topic(&self) -> &'static str {
        self.topic
    }

    /// Returns how bad it is.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns the finding, without the remedy.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the remedy, if there is one.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

impl Level {
    /// Returns the level in one word: `ok`, `warning` or `problem`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
