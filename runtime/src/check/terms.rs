//! What a call is decided by.

use std::borrow::Cow;
use std::{iter, slice};

use super::Check;
use crate::backend::{Request, Verdict};
use crate::key::Short;
use crate::policy::group::Group;
use crate::{Outage, Policy, Subject, overrides};

/// The subjects of a call.
#[derive(Clone, Debug)]
pub(super) enum Subjects<'a> {
    /// Of most calls.
    One(&'a Short),
    /// One for each of the policy's groups, in their order, as far as they are named.
    Several(Vec<Option<Short>>),
    /// The policy does not count a subject of that label.
    Stranger(String),
}

impl<'a> Subjects<'a> {
    #[inline]
    pub(super) fn new(policy: &Policy, subject: &'a Subject) -> Self {
        let is_main = |group: &Group| group.label.is_none();
        match (policy.groups(), subject.whole()) {
            ([group], Some(whole)) if is_main(group) => Self::One(whole),
            (groups, _) => Self::Several(groups.iter().map(|group| is_main(group).then(|| subject.short())).collect()),
        }
    }

    /// Names the subject that has that label in the policy.
    pub(super) fn name(&mut self, policy: &Policy, label: &str, subject: &Subject) {
        let labelled = policy.groups().iter().position(|group| group.label.as_deref() == Some(label));
        let named = match self {
            Self::One(_) => None,
            Self::Several(subjects) => labelled.and_then(|at| subjects.get_mut(at)),
            Self::Stranger(_) => return,
        };
        match named {
            Some(named) => *named = Some(subject.short()),
            None => *self = Self::Stranger(label.to_owned()),
        }
    }
}

/// What a call is decided by: a policy, or one that stands in for it, and the subject of each of its groups.
pub(super) struct Terms<'a> {
    pub(super) policy: Cow<'a, Policy>,
    pub(super) subjects: Cow<'a, [Short]>,
    /// What every call is told before a door that an override closes.
    pub(super) closed: Option<Verdict>,
}

impl Terms<'_> {
    fn are_overridden(&self) -> bool {
        matches!(self.policy, Cow::Owned(_))
    }
}

impl Check<'_> {
    /// What is asked by most calls: by the policy's own rules, of one subject, and nothing but whether to go on.
    #[inline]
    pub(super) fn plain(&self) -> Option<Request<'_>> {
        match self.subjects {
            Subjects::One(subject) if !self.report && !self.refundable && !self.limiter.overrides().are_active() => {
                Some(self.request_of(self.policy, slice::from_ref(subject)))
            }
            _ => None,
        }
    }

    /// The rules that are in force for this call.
    #[inline]
    pub(super) fn terms(&self) -> Result<Terms<'_>, Outage> {
        let terms = self.own_terms()?;
        Ok(if self.limiter.overrides().are_active() { self.overridden(terms) } else { terms })
    }

    /// The rules that are in force and, as an override may count elsewhere, those behind it.
    pub(super) fn all_terms(&self) -> Result<impl Iterator<Item = Terms<'_>>, Outage> {
        let terms = self.terms()?;
        let behind = if terms.are_overridden() { Some(self.own_terms()?) } else { None };
        Ok(iter::once(terms).chain(behind))
    }

    /// The rules of the policy itself.
    #[inline]
    pub(super) fn own_terms(&self) -> Result<Terms<'_>, Outage> {
        Ok(Terms { policy: Cow::Borrowed(self.policy), subjects: self.subjects()?, closed: None })
    }

    #[cold]
    fn overridden<'t>(&self, terms: Terms<'t>) -> Terms<'t> {
        // An override is for the main subject, whose group is the first.
        let main = self.policy.groups().first().filter(|group| group.label.is_none()).and(terms.subjects.first());
        match main.and_then(|subject| self.limiter.overrides().in_force(self.policy, subject)) {
            Some(policy) => Terms { closed: overrides::closed(&policy), policy: Cow::Owned(policy), ..terms },
            None => terms,
        }
    }

    #[inline]
    fn subjects(&self) -> Result<Cow<'_, [Short]>, Outage> {
        match &self.subjects {
            Subjects::One(subject) => Ok(Cow::Borrowed(slice::from_ref(*subject))),
            Subjects::Several(subjects) => match subjects.iter().position(Option::is_none) {
                None => Ok(Cow::Owned(subjects.iter().copied().flatten().collect())),
                Some(missing) => Err(self.left_out(missing)),
            },
            Subjects::Stranger(label) => {
                let name = self.policy.name();
                Err(Outage::new(format!("policy `{name}` has no rule on a subject `{label}`")))
            }
        }
    }

    #[cold]
    fn left_out(&self, missing: usize) -> Outage {
        let label = self.policy.groups().get(missing).and_then(|group| group.label.as_deref()).unwrap_or_default();
        let name = self.policy.name();
        Outage::new(format!("policy `{name}` has rules on a subject `{label}`, which the call left out"))
    }

    #[inline]
    pub(super) fn request<'t>(&self, terms: &'t Terms<'_>) -> Request<'t> {
        let request = self.request_of(&terms.policy, &terms.subjects);
        // Whoever is before a closed door gets a report at most.
        Request { peek: self.peek || terms.closed.is_some(), ..request }
    }

    #[inline]
    fn request_of<'t>(&self, policy: &'t Policy, subjects: &'t [Short]) -> Request<'t> {
        Request { policy, subjects, cost: self.cost, report: self.report, peek: self.peek }
    }

    /// What an override says without asking anybody, if it closes the door. Only the storage knows what to report.
    #[inline]
    pub(super) fn closed(&self, terms: &Terms<'_>) -> Option<Verdict> {
        terms.closed.filter(|_| !self.report)
    }
}
