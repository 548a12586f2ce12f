//! The rules in force for a call.

use std::borrow::Cow;
use std::iter;

use super::{Check, Subjects};
use crate::decision::Wait;
use crate::error::BackendError;
use crate::policy::Policy;
use crate::store::{CallOptions, LeaseName, Outcome, Request};
use crate::subject::SubjectKey;

/// The policy in force for a call, its own or an override's, and the subject of each of its groups.
pub(super) struct Effective<'a> {
    pub(super) policy: Cow<'a, Policy>,
    pub(super) subjects: Cow<'a, [SubjectKey]>,
    /// The outcome of every call, if an override closes the limit by a count of 0.
    pub(super) closed: Option<Outcome>,
}

impl Effective<'_> {
    fn is_overridden(&self) -> bool {
        matches!(self.policy, Cow::Owned(_))
    }

    pub(super) fn request(&self, options: CallOptions) -> Request<'_> {
        // At a closed limit there is nothing to charge, at most something to report.
        let options = CallOptions { peek: options.peek || self.closed.is_some(), ..options };
        let takes_lease = self.policy.has_leases() && !options.peek;
        let options = CallOptions { lease: takes_lease.then(LeaseName::next), ..options };
        Request::new(&self.policy, &self.subjects, warned_by(&self.policy, options))
    }

    /// The requests about some of the subjects: one about all of them, or one about each tally of the main one.
    pub(super) fn requests(&self, subjects: Subjects, options: CallOptions) -> Vec<Request<'_>> {
        let whole = self.request(options);
        match subjects {
            Subjects::All => vec![whole],
            Subjects::Main => {
                let groups = self.policy.groups().iter().enumerate();
                groups.filter(|(_, group)| group.label.is_none()).map(|(index, _)| whole.part(index)).collect()
            }
        }
    }

    /// The outcome that needs no store, if an override closes the limit. A report always needs the store.
    #[inline]
    pub(super) fn closed(&self, options: CallOptions) -> Option<Outcome> {
        self.closed.filter(|_| !options.report)
    }
}

impl Check<'_> {
    /// The rules in force for this call.
    #[inline]
    pub(super) fn effective(&self) -> Result<Effective<'_>, BackendError> {
        Ok(self.in_force(self.own()?))
    }

    /// The rules in force for these subjects and, as an override may use other tallies, the policy's own rules behind it.
    pub(super) fn effective_and_own(
        &self,
        subjects: Subjects,
    ) -> Result<impl Iterator<Item = Effective<'_>>, BackendError> {
        let subjects = match subjects {
            Subjects::Main => self.inputs.subjects_filled_by_main()?,
            Subjects::All => self.inputs.subjects()?,
        };
        let effective = self.in_force(self.own_on(subjects));
        let own = effective.is_overridden().then(|| self.own_on(subjects));
        Ok(iter::once(effective).chain(own))
    }

    /// The policy's own rules.
    #[inline]
    pub(super) fn own(&self) -> Result<Effective<'_>, BackendError> {
        Ok(self.own_on(self.inputs.subjects()?))
    }

    #[inline]
    fn own_on<'e>(&'e self, subjects: &'e [SubjectKey]) -> Effective<'e> {
        Effective { policy: Cow::Borrowed(self.policy()), subjects: Cow::Borrowed(subjects), closed: None }
    }

    #[inline]
    fn in_force<'e>(&self, own: Effective<'e>) -> Effective<'e> {
        if self.limiter().core.overrides.are_active() { self.overridden(own) } else { own }
    }

    #[cold]
    fn overridden<'e>(&self, own: Effective<'e>) -> Effective<'e> {
        let core = &self.limiter().core;
        core.remove_expired_overrides();
        match core.overrides.in_force(self.policy(), &own.subjects) {
            Some(policy) => {
                Effective { closed: closed(&policy), subjects: subjects_of(&policy, &own), policy: Cow::Owned(policy) }
            }
            None => own,
        }
    }
}

/// The subject of each group of another policy, which has those of the own one: an override may add or remove a limit on
/// concurrent calls, which is a group of its own.
fn subjects_of<'e>(policy: &Policy, own: &Effective<'e>) -> Cow<'e, [SubjectKey]> {
    let labels = |policy: &Policy| policy.groups().iter().map(|group| group.label.clone()).collect::<Vec<_>>();
    let (labels, own_labels) = (labels(policy), labels(&own.policy));
    if labels == own_labels {
        return own.subjects.clone();
    }
    let subject = |label| own_labels.iter().position(|own| own == label).and_then(|index| own.subjects.get(index));
    labels.iter().filter_map(subject).copied().collect()
}

/// A warning takes a report, for which a cached denial is enough.
fn warned_by(policy: &Policy, options: CallOptions) -> CallOptions {
    let is_reported = options.report || policy.warn_at().is_none();
    if is_reported { options } else { CallOptions { report: true, report_is_optional: true, ..options } }
}

/// The outcome of every call if a rule has the count 0: the limit is closed.
pub(super) fn closed(policy: &Policy) -> Option<Outcome> {
    let rule = policy.groups().iter().flat_map(|group| &group.rules).position(|rule| rule.count() == 0)?;
    Some(Outcome::denied(rule, Wait::NEVER).with_position(policy))
}
