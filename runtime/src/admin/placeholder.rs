//! A value that a key shows.

/// A value that the key of a subject shows: `phone` of `sms:{phone:hash}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    name: String,
    is_hashed: bool,
}

impl Placeholder {
    pub(super) fn new(name: String, is_hashed: bool) -> Self {
        Self { name, is_hashed }
    }

    pub(super) fn merge(&mut self, is_hashed: bool) {
        self.is_hashed |= is_hashed;
    }

    /// Returns the name, as it is written between the braces without filters: `phone`, `self.tenant`, `@ip`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether a key has its digest, for which the [secret](crate::LimiterBuilder::secret) of the programs is
    /// needed.
    #[must_use]
    pub fn is_hashed(&self) -> bool {
        self.is_hashed
    }
}
