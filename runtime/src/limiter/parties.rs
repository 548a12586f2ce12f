//! Who takes part in a call: the limiter, the policy and the subjects.

use std::borrow::Cow;
use std::slice;
use std::sync::Arc;

use super::Limiter;
use super::call_subjects::CallSubjects;
use crate::error::BackendError;
use crate::policy::Policy;
use crate::subject::{Subject, SubjectKey};

/// The limiter, the policy and the subjects of a call.
#[derive(Clone)]
pub(super) enum Parties<'a> {
    /// Those of most calls: one subject, and nothing that has to be dropped.
    Borrowed {
        limiter: &'a Limiter,
        policy: &'a Policy,
        subject: &'a SubjectKey,
    },
    // An `Arc`, although clones are rare: to drop one that is not there is a test, as the rest is code of its own.
    Owned(Arc<OwnedParties<'a>>),
}

/// Those of any call.
#[derive(Clone)]
pub(super) struct OwnedParties<'a> {
    limiter: Cow<'a, Limiter>,
    policy: Cow<'a, Policy>,
    subjects: CallSubjects,
}

impl<'a> OwnedParties<'a> {
    #[cold]
    fn new(limiter: Cow<'a, Limiter>, policy: Cow<'a, Policy>, subject: &Subject) -> Arc<Self> {
        let subjects = CallSubjects::new(&policy, subject);
        Arc::new(Self { limiter, policy, subjects })
    }
}

impl<'a> Parties<'a> {
    /// Starts with the main subject, and borrows what can be borrowed.
    #[inline]
    pub(super) fn borrowed(limiter: &'a Limiter, policy: &'a Policy, subject: &'a Subject) -> Self {
        match (policy.groups(), subject.whole()) {
            ([group], Some(subject)) if group.label.is_none() => Self::Borrowed { limiter, policy, subject },
            _ => Self::Owned(OwnedParties::new(Cow::Borrowed(limiter), Cow::Borrowed(policy), subject)),
        }
    }

    /// Starts with the main subject, and outlives what it is made of.
    pub(super) fn owned(limiter: Cow<'a, Limiter>, policy: Policy, subject: &Subject) -> Self {
        Self::Owned(OwnedParties::new(limiter, Cow::Owned(policy), subject))
    }

    /// Has no policy, because that is refused.
    pub(super) fn without_policy(limiter: Cow<'a, Limiter>, name: String, error: BackendError) -> Self {
        let policy = Cow::Owned(Policy::without_rules(name));
        Self::Owned(Arc::new(OwnedParties { limiter, policy, subjects: CallSubjects::Undecidable(error) }))
    }

    /// Adds the subject that has that label in the policy.
    pub(super) fn insert_subject(&mut self, label: &str, subject: &Subject) {
        if let Self::Borrowed { limiter, policy, subject } = *self {
            let subjects = CallSubjects::One(*subject);
            *self = Self::Owned(Arc::new(OwnedParties {
                limiter: Cow::Borrowed(limiter),
                policy: Cow::Borrowed(policy),
                subjects,
            }));
        }
        if let Self::Owned(parties) = self {
            let OwnedParties { policy, subjects, .. } = Arc::make_mut(parties);
            subjects.insert(policy, label, subject);
        }
    }

    #[inline]
    pub(super) fn limiter(&self) -> &Limiter {
        match self {
            Self::Borrowed { limiter, .. } => limiter,
            Self::Owned(parties) => &parties.limiter,
        }
    }

    #[inline]
    pub(super) fn policy(&self) -> &Policy {
        match self {
            Self::Borrowed { policy, .. } => policy,
            Self::Owned(parties) => &parties.policy,
        }
    }

    /// The main subject alone. Nothing, if no rule counts it.
    ///
    /// # Errors
    ///
    /// The call has a subject that the policy does not know, or there is no policy.
    pub(super) fn main_subject(&self) -> Result<&[SubjectKey], BackendError> {
        match self {
            Self::Borrowed { subject, .. } => Ok(slice::from_ref(*subject)),
            Self::Owned(parties) => parties.subjects.main(&parties.policy),
        }
    }

    /// The subject of each of the policy's groups, in their order.
    ///
    /// # Errors
    ///
    /// The call left one out, or has one that the policy does not know, or there is no policy.
    pub(super) fn subjects(&self) -> Result<Cow<'_, [SubjectKey]>, BackendError> {
        match self {
            Self::Borrowed { subject, .. } => Ok(Cow::Borrowed(slice::from_ref(*subject))),
            Self::Owned(parties) => parties.subjects.complete(&parties.policy),
        }
    }
}
