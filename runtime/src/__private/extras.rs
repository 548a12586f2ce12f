//! What most annotated calls do not have: a limiter of their own, other subjects, options.

use std::borrow::Cow;

use super::entering::Entering;
use super::question::Question;
use crate::decision::Rejection;
use crate::limiter::Limiter;
use crate::policy::Policy;
use crate::store::CallOptions;
use crate::subject::Subject;

/// What most calls do not have.
#[derive(Debug)]
pub(super) struct Extras<'a> {
    /// The limiter that the user named.
    pub(super) limiter: Option<Cow<'a, Limiter>>,
    /// The other subjects, by their labels.
    pub(super) others: Vec<(&'static str, Subject)>,
    pub(super) options: CallOptions,
}

impl Extras<'_> {
    pub(super) fn enter(
        extras: Option<&Self>,
        policy: Result<&Policy, &'static Rejection>,
        subject: &Subject,
    ) -> Entering {
        match policy {
            Ok(policy) => Self::question(extras, policy, subject).decide(),
            Err(_) if extras.is_some_and(|extras| extras.options.shadow) => Entering::skipped(),
            Err(refused) => Entering::known(Err(refused.clone())),
        }
    }

    #[inline]
    pub(super) fn question<'q>(extras: Option<&'q Self>, policy: &'q Policy, subject: &'q Subject) -> Question<'q> {
        Question {
            limiter: Self::limiter(extras),
            policy,
            subject,
            others: extras.map_or(&[], |extras| &extras.others),
            options: extras.map_or(CallOptions::PLAIN, |extras| extras.options),
        }
    }

    #[inline]
    pub(super) fn limiter(extras: Option<&Self>) -> &Limiter {
        extras.and_then(|extras| extras.limiter.as_deref()).unwrap_or_else(|| Limiter::installed())
    }

    pub(super) fn owned(&self) -> Extras<'static> {
        let limiter = self.limiter.as_deref().cloned().map(Cow::Owned);
        Extras { limiter, others: self.others.clone(), options: self.options }
    }
}
