//! Who made a decision.

use std::fmt;

/// Who made a decision: the backend, or what takes its place while it is away.
///
/// See [`OnOutage`](crate::OnOutage).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecidedBy {
    /// The backend that the limiter was built with, or what this process knows of it.
    #[default]
    Backend,
    /// This process alone, while Redis is away. It uses the same rules with its
    /// [part](crate::LimiterBuilder::processes) of their counts, and counts only what it has admitted itself in
    /// outages.
    Standby,
    /// Nobody: Redis is away, and the policy admits calls meanwhile. Nothing is counted.
    Nobody,
}

impl DecidedBy {
    /// Returns the name that metrics, log and spans show.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Backend => "backend",
            Self::Standby => "standby",
            Self::Nobody => "nobody",
        }
    }
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
