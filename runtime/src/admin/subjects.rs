//! The subjects of a call as a tool makes them, and the values that their keys show.

use crate::limiter::{Check, Limiter};
use crate::policy::Policy;
use crate::subject::Subject;

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

    /// Returns the name, as it stands between the braces without filters: `phone`, `self.tenant`, `@ip`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether a key shows the digest of this value, for which the [secret](crate::LimiterBuilder::secret) of
    /// the programs is needed.
    #[must_use]
    pub fn is_hashed(&self) -> bool {
        self.is_hashed
    }
}

/// The subjects of a call of a policy: see [`RegisteredPolicy::render`](super::RegisteredPolicy::render).
#[derive(Clone, Debug, PartialEq)]
pub struct Subjects {
    main: Subject,
    others: Vec<(String, Subject)>,
}

impl Subjects {
    pub(super) fn new(main: Subject, others: Vec<(String, Subject)>) -> Self {
        Self { main, others }
    }

    /// Returns the main subject, or [everyone](Subject::everyone) if no rule counts it.
    #[must_use]
    pub fn main(&self) -> &Subject {
        &self.main
    }

    /// Returns the other subjects, by their labels.
    pub fn others(&self) -> impl Iterator<Item = (&str, &Subject)> {
        self.others.iter().map(|(label, subject)| (label.as_str(), subject))
    }

    /// Starts a call of these subjects.
    pub fn check<'a>(&'a self, limiter: &'a Limiter, policy: &'a Policy) -> Check<'a> {
        self.others().fold(limiter.check(policy, &self.main), |check, (label, subject)| check.subject(label, subject))
    }
}
