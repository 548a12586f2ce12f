//! The rules in force for a call.

use std::borrow::Cow;
use std::iter;

use super::{Check, Subjects};
use crate::error::BackendError;
use crate::policy::Policy;
use crate::store::{CallOptions, Outcome, Request};
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
        Request { policy: &self.policy, subjects: &self.subjects, options }
    }

    /// The outcome that needs no store, if an override closes the limit. A report always needs the store.
    #[inline]
    pub(super) fn closed(&self, options: CallOptions) -> Option<Outcome> {
        self.closed.filter(|_| !options.report)
    }
}

impl Check<'_> {
    /// The request of most calls: by the policy's own rules, on one subject, for nothing but the outcome.
    #[inline]
    pub(super) fn plain_request(&self) -> Option<Request<'_>> {
        let subjects = self.subjects.only()?;
        let options = self.options;
        let plain = !options.report && !options.refundable && !self.limiter.core.overrides.are_active();
        plain.then_some(Request { policy: &self.policy, subjects, options })
    }

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
        let own = || match subjects {
            Subjects::Main => self.own_of_main(),
            Subjects::All => self.own(),
        };
        let effective = self.in_force(own()?);
        let own = if effective.is_overridden() { Some(own()?) } else { None };
        Ok(iter::once(effective).chain(own))
    }

    /// The policy's own rules.
    #[inline]
    pub(super) fn own(&self) -> Result<Effective<'_>, BackendError> {
        let subjects = self.subjects.complete(&self.policy)?;
        Ok(Effective { policy: Cow::Borrowed(&*self.policy), subjects, closed: None })
    }

    /// The policy's own rules on the main subject, and no others.
    fn own_of_main(&self) -> Result<Effective<'_>, BackendError> {
        let subjects = Cow::Borrowed(self.subjects.main(&self.policy)?);
        Ok(Effective { policy: Cow::Borrowed(&*self.policy), subjects, closed: None })
    }

    #[inline]
    fn in_force<'e>(&self, own: Effective<'e>) -> Effective<'e> {
        if self.limiter.core.overrides.are_active() { self.overridden(own) } else { own }
    }

    #[cold]
    fn overridden<'e>(&self, own: Effective<'e>) -> Effective<'e> {
        let core = &self.limiter.core;
        core.remove_expired_overrides();
        match core.overrides.in_force(&self.policy, &own.subjects) {
            Some(policy) => Effective { closed: closed(&policy), policy: Cow::Owned(policy), ..own },
            None => own,
        }
    }
}

/// The outcome of every call if a rule has the count 0: the limit is closed.
fn closed(policy: &Policy) -> Option<Outcome> {
    let rule = policy.groups().iter().flat_map(|group| &group.rules).position(|rule| rule.count() == 0)?;
    Some(Outcome::Denied { rule, retry_after: None }.with_position(policy))
}
