//! The subjects of a call.

use std::borrow::Cow;
use std::slice;

use crate::error::BackendError;
use crate::policy::{Policy, RuleGroup};
use crate::subject::{Subject, SubjectKey};

/// The subjects of a call, as far as the caller gave them.
#[derive(Clone, Debug)]
pub(crate) enum CallSubjects<'a> {
    /// The only subject of most calls.
    One(&'a SubjectKey),
    /// The same, of a call that outlives its caller's subject.
    // Boxed, so that a call that is decided at once stays small.
    OwnedOne(Box<SubjectKey>),
    /// One for each of the policy's groups, in their order.
    Several(Vec<Option<SubjectKey>>),
    /// The policy has no rule on a subject of that label.
    UnknownLabel(String),
    /// There is no policy, so no subject can be counted.
    NoPolicy(BackendError),
}

impl<'a> CallSubjects<'a> {
    /// Starts with the main subject.
    #[inline]
    pub(super) fn new(policy: &Policy, subject: Cow<'a, Subject>) -> Self {
        let is_main = |group: &RuleGroup| group.label.is_none();
        match policy.groups() {
            [group] if is_main(group) => match subject {
                Cow::Borrowed(subject) => subject.whole().map_or_else(|| Self::owned(subject), Self::One),
                Cow::Owned(subject) => Self::owned(&subject),
            },
            groups => Self::Several(groups.iter().map(|group| is_main(group).then(|| subject.key())).collect()),
        }
    }

    #[cold]
    fn owned(subject: &Subject) -> Self {
        Self::OwnedOne(Box::new(subject.key()))
    }

    /// Adds the subject that has that label in the policy.
    pub(super) fn insert(&mut self, policy: &Policy, label: &str, subject: &Subject) {
        let labelled = policy.groups().iter().position(|group| group.label.as_deref() == Some(label));
        let place = match self {
            Self::One(_) | Self::OwnedOne(_) => None,
            Self::Several(subjects) => labelled.and_then(|index| subjects.get_mut(index)),
            Self::UnknownLabel(_) | Self::NoPolicy(_) => return,
        };
        match place {
            Some(place) => *place = Some(subject.key()),
            None => *self = Self::UnknownLabel(label.to_owned()),
        }
    }

    /// The only subject, if there is just one.
    #[inline]
    pub(super) fn only(&self) -> Option<&[SubjectKey]> {
        match self {
            Self::One(subject) => Some(slice::from_ref(*subject)),
            Self::OwnedOne(subject) => Some(slice::from_ref(&**subject)),
            _ => None,
        }
    }

    /// The main subject alone: that of the policy's first group. Nothing, if no rule counts it.
    ///
    /// # Errors
    ///
    /// The call has a subject that the policy does not know, or there is no policy.
    pub(super) fn main(&self, policy: &Policy) -> Result<&[SubjectKey], BackendError> {
        match self {
            Self::One(subject) => Ok(slice::from_ref(*subject)),
            Self::OwnedOne(subject) => Ok(slice::from_ref(&**subject)),
            Self::Several(subjects) => {
                let main = policy.groups().first().filter(|group| group.label.is_none());
                let main = main.and(subjects.first()).and_then(Option::as_ref);
                Ok(main.map(slice::from_ref).unwrap_or_default())
            }
            Self::UnknownLabel(label) => Err(unknown_label(policy, label)),
            Self::NoPolicy(error) => Err(error.clone()),
        }
    }

    /// The subject of each of the policy's groups, in their order.
    ///
    /// # Errors
    ///
    /// The call left one out, or has one that the policy does not know, or there is no policy.
    #[inline]
    pub(super) fn complete(&self, policy: &Policy) -> Result<Cow<'_, [SubjectKey]>, BackendError> {
        match self {
            Self::One(subject) => Ok(Cow::Borrowed(slice::from_ref(*subject))),
            Self::OwnedOne(subject) => Ok(Cow::Borrowed(slice::from_ref(&**subject))),
            Self::Several(subjects) => match subjects.iter().position(Option::is_none) {
                None => Ok(Cow::Owned(subjects.iter().copied().flatten().collect())),
                Some(missing) => Err(left_out(policy, missing)),
            },
            Self::UnknownLabel(label) => Err(unknown_label(policy, label)),
            Self::NoPolicy(error) => Err(error.clone()),
        }
    }
}

#[cold]
fn unknown_label(policy: &Policy, label: &str) -> BackendError {
    BackendError::new(format!("policy `{}` has no rule on a subject `{label}`", policy.name()))
}

#[cold]
fn left_out(policy: &Policy, missing: usize) -> BackendError {
    let label = policy.groups().get(missing).and_then(|group| group.label.as_deref()).unwrap_or_default();
    let name = policy.name();
    BackendError::new(format!("policy `{name}` has rules on a subject `{label}`, which the call left out"))
}
