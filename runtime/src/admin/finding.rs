//! One thing that was found out about a server.

use std::fmt;

/// One thing that was found out about a server, and what to do about it.
///
/// Its text is a sentence, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    topic: &'static str,
    level: Level,
    text: String,
    remedy: Option<String>,
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// It is as it should be.
    Ok,
    /// Limits are decided, but may be lost, late or wrong some day.
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

    /// Returns what it is about, in one word: `connection`, `version`, `eviction`, `memory`, `persistence`, `clock`,
    /// `latency`, `permissions`, `script`, `keys`, or `info` where the server does not tell about itself.
    #[must_use]
    pub fn topic(&self) -> &'static str {
        self.topic
    }

    /// Returns how bad it is.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns what was found out, without the remedy.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns what to do about it, if anything.
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
