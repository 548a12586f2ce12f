//! The subjects of a call, as a tool has made them.

use crate::limiter::{Check, Limiter};
use crate::policy::Policy;
use crate::subject::Subject;

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

    /// Returns the main subject: [everyone](Subject::everyone), if no rule counts it.
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
