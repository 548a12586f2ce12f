//! The subjects of a call.

use std::borrow::Cow;
use std::slice;

use crate::error::BackendError;
use crate::policy::{Policy, RuleGroup};
use crate::subject::{Subject, SubjectKey};

/// The subjects of a call, as far as the caller gave them.
#[derive(Clone, Debug)]
pub(crate) enum CallSubjects {
    /// The only subject of most calls.
    One(SubjectKey),
    /// One for each of the policy's groups, in their order.
    Several(Box<[Option<SubjectKey>]>),
    /// The policy has no rule on a subject of that label.
    UnknownLabel(Box<str>),
    /// There is no policy, or a subject lacks a value, so nothing can be counted.
    Undecidable(BackendError),
}

impl CallSubjects {
    /// Starts with the main subject.
    pub(crate) fn new(policy: &Policy, subject: &Subject) -> Self {
        if let Some(mistake) = subject.mistake() {
            return Self::Undecidable(mistake.clone());
        }
        let is_main = |group: &RuleGroup| group.label.is_none();
        match policy.groups() {
            [group] if is_main(group) => Self::One(subject.key()),
            groups => Self::Several(groups.iter().map(|group| is_main(group).then(|| subject.key())).collect()),
        }
    }

    /// Adds the subject that has that label in the policy.
    pub(crate) fn insert(&mut self, policy: &Policy, label: &str, subject: &Subject) {
        if matches!(self, Self::UnknownLabel(_) | Self::Undecidable(_)) {
            return;
        }
        let is_labelled = |group: &RuleGroup| group.label.as_deref() == Some(label);
        match self {
            _ if !policy.groups().iter().any(is_labelled) => *self = Self::UnknownLabel(label.into()),
            Self::Several(subjects) => {
                if let Some(mistake) = subject.mistake() {
                    *self = Self::Undecidable(mistake.clone());
                    return;
                }
                let places = policy.groups().iter().zip(subjects).filter(|(group, _)| is_labelled(group));
                places.for_each(|(_, place)| *place = Some(subject.key()));
            }
            _ => *self = Self::UnknownLabel(label.into()),
        }
    }

    /// The main subject alone. Nothing, if no rule counts it.
    ///
    /// # Errors
    ///
    /// The call has a subject that the policy does not know, or there is no policy.
    pub(crate) fn main(&self, policy: &Policy) -> Result<&[SubjectKey], BackendError> {
        match self {
            Self::One(subject) => Ok(slice::from_ref(subject)),
            Self::Several(subjects) => {
                let main = policy.groups().iter().position(|group| group.label.is_none());
                let main = main.and_then(|index| subjects.get(index)?.as_ref());
                Ok(main.map(slice::from_ref).unwrap_or_default())
            }
            Self::UnknownLabel(label) => Err(unknown_label(policy, label)),
            Self::Undecidable(error) => Err(error.clone()),
        }
    }

    /// The subject of each of the policy's groups, in their order.
    ///
    /// # Errors
    ///
    /// The call left one out, or has one that the policy does not know, or there is no policy.
    pub(crate) fn complete(&self, policy: &Policy) -> Result<Cow<'_, [SubjectKey]>, BackendError> {
        match self {
            Self::One(subject) => Ok(Cow::Borrowed(slice::from_ref(subject))),
            Self::Several(subjects) => match subjects.iter().position(Option::is_none) {
                None => Ok(Cow::Owned(subjects.iter().copied().flatten().collect())),
                Some(missing) => Err(left_out(policy, missing)),
            },
            Self::UnknownLabel(label) => Err(unknown_label(policy, label)),
            Self::Undecidable(error) => Err(error.clone()),
        }
    }
}

#[cold]
fn unknown_label(policy: &Policy, label: &str) -> BackendError {
    BackendError::misuse(format!("policy `{}` has no rule on a subject `{label}`", policy.name()))
}

#[cold]
fn left_out(policy: &Policy, missing: usize) -> BackendError {
    let label = policy.groups().get(missing).and_then(|group| group.label.as_deref()).unwrap_or_default();
    let name = policy.name();
    BackendError::misuse(format!("policy `{name}` has rules on a subject `{label}`, which the call left out"))
}
