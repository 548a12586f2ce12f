//! The target of an override, which is the rules of a policy on one of its subjects, for all values of the subject or for
//! one; and what it changes there.

use std::fmt;
use std::hash::{Hash, Hasher};

use hashbrown::Equivalent;
use tallygate_rules::Replacement;

use crate::subject::{Subject, escape_name, percent_decode, percent_encode};

#[derive(Clone)]
pub(in crate::limiter) struct OverrideTarget {
    pub(super) policy: String,
    /// The label of the subject; `None` is the main one.
    pub(super) label: Option<String>,
    pub(super) subject: Option<Subject>,
    escaped_policy: Box<str>,
    escaped_subject: Option<Box<str>>,
}

/// The key by which a target is found, as it stands in the keys of tallies.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TargetKey<'a> {
    pub(super) policy: &'a str,
    pub(super) label: Option<&'a str>,
    pub(super) subject: Option<&'a str>,
}

/// What an override changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::limiter) struct OverrideContent {
    /// `None` if the rules stay as they are.
    pub(super) replacement: Option<Replacement>,
    /// Whether the policy is in shadow; `None` if that stays as it is.
    pub(super) shadow: Option<bool>,
}

impl OverrideTarget {
    pub(in crate::limiter) fn new(policy: String, label: Option<String>, subject: Option<Subject>) -> Self {
        let escaped_subject = subject.as_ref().map(|subject| (*subject.key()).into());
        Self { escaped_policy: (*escape_name(&policy)).into(), escaped_subject, policy, label, subject }
    }

    /// Whether single rules of the override may count any subject of the calls, because it names none.
    pub(super) fn is_for_any_subject(&self) -> bool {
        self.label.is_none() && self.subject.is_none()
    }

    /// Whether it is for rules on the subject with this label.
    pub(super) fn includes(&self, label: Option<&str>) -> bool {
        self.is_for_any_subject() || self.label.as_deref() == label
    }

    pub(super) fn key(&self) -> TargetKey<'_> {
        let subject = self.escaped_subject.as_deref();
        TargetKey { policy: &self.escaped_policy, label: self.label.as_deref(), subject }
    }
}

impl fmt::Debug for OverrideTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, label, subject, .. } = self;
        f.debug_struct("OverrideTarget")
            .field("policy", policy)
            .field("label", label)
            .field("subject", subject)
            .finish()
    }
}

impl PartialEq for OverrideTarget {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for OverrideTarget {}

impl Hash for OverrideTarget {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Equivalent<OverrideTarget> for TargetKey<'_> {
    fn equivalent(&self, target: &OverrideTarget) -> bool {
        *self == target.key()
    }
}

/// In Redis, an override has a field of the form `policy`, `policy:subject`, `policy=label` or `policy=label:subject`.
/// Names and labels are percent-encoded, so they contain neither `:` nor `=`.
impl OverrideTarget {
    pub(super) fn field(&self) -> String {
        let mut field = percent_encode(&self.policy);
        if let Some(label) = &self.label {
            field.push('=');
            field.push_str(&percent_encode(label));
        }
        if let Some(subject) = &self.escaped_subject {
            field.push(':');
            field.push_str(subject);
        }
        field
    }

    /// Reads a field, or returns `None` if it has another form.
    pub(super) fn from_field(field: &str) -> Option<Self> {
        let (names, subject) = match field.split_once(':') {
            Some((names, subject)) => (names, Some(Subject::from_escaped(subject)?)),
            None => (field, None),
        };
        let (policy, label) = match names.split_once('=') {
            Some((policy, label)) => (policy, Some(percent_decode(label)?)),
            None => (names, None),
        };
        Some(Self::new(percent_decode(policy)?, label, subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_says_policy_label_and_subject() {
        let vip = || Some(Subject::of("user").and("a:b"));
        let label = || Some("net work".to_owned());
        for (target, field) in [
            (OverrideTarget::new("sms.send".into(), None, None), "sms.send"),
            (OverrideTarget::new("sms.send".into(), None, vip()), "sms.send:user:a%3Ab"),
            (OverrideTarget::new("sms.send".into(), None, Some(Subject::everyone())), "sms.send:"),
            (OverrideTarget::new("a::b=c".into(), label(), None), "a%3A%3Ab%3Dc=net%20work"),
            (OverrideTarget::new("p".into(), label(), vip()), "p=net%20work:user:a%3Ab"),
        ] {
            assert_eq!(target.field(), field);
            let read = OverrideTarget::from_field(field).unwrap();
            assert_eq!(
                (read.policy.as_str(), &read.label, &read.subject),
                (target.policy.as_str(), &target.label, &target.subject)
            );
            assert!(read.key() == target.key(), "{field}");
        }
        let long = "p".repeat(300);
        assert_eq!(OverrideTarget::from_field(&long).unwrap().policy, long);
    }

    #[test]
    fn what_has_another_form_is_for_nothing() {
        for field in ["!version", "a b", "p=é", "p=a=b", "p:\u{e9}", "p%4"] {
            assert!(OverrideTarget::from_field(field).is_none(), "{field}");
        }
    }
}
