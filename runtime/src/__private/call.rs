//! The calls of annotated functions that have more than a policy and a subject.

use std::borrow::Cow;
use std::time::Duration;

use super::admission::{Admission, Admitted};
use super::values::{Texts, Values, subject};
use crate::call::{CallOptions, WaitLimit};
use crate::decision::Rejection;
use crate::error::BackendError;
use crate::limiter::{Check, Limiter};
use crate::policy::Policy;
use crate::subject::Subject;

/// How one call is decided, where the attribute has more than rules and a key.
#[derive(Debug)]
pub struct LimitedCall<'a> {
    policy: Result<Cow<'a, Policy>, &'static Rejection>,
    subject: Subject,
    settings: Option<CallSettings<'a>>,
}

/// A call that is prepared where a function is called, and decided in the future that the function returns.
///
/// It owns what it is made of, and takes little room in that future. It has no subject, `()`, if the future renders that.
/// `None` stands for a call that is not limited.
#[derive(Debug)]
pub struct DeferredCall<S = Subject>(Option<Deferred<S>>);

#[derive(Debug)]
struct Deferred<S> {
    policy: Result<Policy, &'static Rejection>,
    subject: S,
    /// Boxed, as most calls have none.
    settings: Option<Box<CallSettings<'static>>>,
}

/// What most calls do not have: a limiter of their own, other subjects, options.
#[derive(Debug)]
pub(super) struct CallSettings<'a> {
    /// The limiter that the user named.
    limiter: Option<Cow<'a, Limiter>>,
    /// The other subjects, by their labels.
    others: Vec<(&'static str, Subject)>,
    options: CallOptions,
}

/// Returns the limiter that the user named.
///
/// It is the element of an array, because the compiler then underlines it alone when its type is wrong.
#[inline]
pub fn limiter([named]: [&Limiter; 1]) -> &Limiter {
    named
}

/// Returns the limiter that is installed at this moment.
#[inline]
pub fn installed() -> &'static Limiter {
    Limiter::installed()
}

/// Starts a call by a policy that the user named.
///
/// It is the element of an array, because the compiler then underlines it alone when its type is wrong.
#[inline]
#[track_caller]
pub fn call([policy]: [&Policy; 1], key: Texts, values: impl Values) -> LimitedCall<'_> {
    LimitedCall::new(Ok(Cow::Borrowed(policy)), subject(key, values))
}

impl<'a> LimitedCall<'a> {
    #[inline]
    pub(super) fn new(policy: Result<Cow<'a, Policy>, &'static Rejection>, subject: Subject) -> Self {
        Self { policy, subject, settings: None }
    }

    /// Chooses the limiter.
    #[inline]
    pub fn limiter(&mut self, limiter: &'a Limiter) -> &mut Self {
        self.settings().limiter = Some(Cow::Borrowed(limiter));
        self
    }

    /// Sets the counts of the rules.
    pub fn counts<const N: usize>(&mut self, counts: [u64; N]) -> &mut Self {
        if let Ok(policy) = &mut self.policy {
            *policy = Cow::Owned(policy.with_counts(counts));
        }
        self
    }

    /// Adds another subject.
    #[track_caller]
    pub fn subject(&mut self, label: &'static str, key: Texts, values: impl Values) -> &mut Self {
        self.settings().others.push((label, subject(key, values)));
        self
    }

    /// Sets the weight.
    ///
    /// It is the element of an array, because the compiler then underlines it alone when its type is wrong.
    #[inline]
    pub fn cost(&mut self, [cost]: [u64; 1]) -> &mut Self {
        self.settings().options.cost = cost;
        self
    }

    /// Sets the weight, at least 1. It may depend on the client, which must not get free calls by that.
    #[inline]
    pub fn cost_or_one(&mut self, [cost]: [u64; 1]) -> &mut Self {
        self.cost([cost.max(1)])
    }

    /// Waits up to that long.
    #[inline]
    pub fn wait(&mut self, limit: Duration) -> &mut Self {
        self.settings().options.wait = Some(WaitLimit::Within(limit));
        self
    }

    /// Asks for a permit that can be refunded.
    #[inline]
    pub fn refundable(&mut self) -> &mut Self {
        self.settings().options.refundable = true;
        self
    }

    /// Runs the call whatever is decided.
    #[inline]
    pub fn shadow(&mut self) -> &mut Self {
        self.settings().options.shadow = true;
        self
    }

    /// Decides the call.
    pub fn enter(&self) -> Admission {
        let policy = self.policy.as_deref().map_err(|refused| *refused);
        admission(policy, &self.subject, self.settings.as_ref())
    }

    /// Decides the call of a function that is not async.
    #[allow(clippy::missing_errors_doc, reason = "only what the attribute writes calls it")]
    pub fn blocking_enter(&self) -> Admitted {
        let policy = self.policy.as_deref().map_err(|refused| *refused);
        blocking_admission(policy, &self.subject, self.settings.as_ref())
    }

    /// Returns the call for a future that decides it later.
    #[must_use]
    pub fn defer(&self) -> DeferredCall {
        self.defer_with(self.subject.clone())
    }

    /// Returns the call for a future that renders its subjects, too.
    #[must_use]
    pub fn defer_without_subject(&self) -> DeferredCall<()> {
        self.defer_with(())
    }

    fn defer_with<S>(&self, subject: S) -> DeferredCall<S> {
        let policy = self.policy.as_deref().cloned().map_err(|refused| *refused);
        let settings = self.settings.as_ref().map(|settings| Box::new(settings.to_owned()));
        DeferredCall(Some(Deferred { policy, subject, settings }))
    }

    /// Returns the check of the call, which owns all that it needs.
    ///
    /// If the policy is refused, awaiting the check is an error.
    pub fn check(&self) -> Check<'static> {
        let settings = self.settings.as_ref();
        match &self.policy {
            Ok(policy) => check(policy, &self.subject, settings).into_owned(),
            Err(refused) => {
                let error = refused.backend_error().cloned();
                let error = error.unwrap_or_else(|| BackendError::misuse(refused.to_string()));
                Check::without_policy(limiter_of(settings).clone(), refused.policy().to_owned(), error)
            }
        }
    }

    #[inline]
    fn settings(&mut self) -> &mut CallSettings<'a> {
        self.settings.get_or_insert(CallSettings { limiter: None, others: Vec::new(), options: CallOptions::PLAIN })
    }
}

impl<S> DeferredCall<S> {
    /// Stands for a call that is not limited.
    #[must_use]
    pub const fn skipped() -> Self {
        Self(None)
    }
}

impl DeferredCall {
    /// Decides the call. It is taken, so that a future owns it in whichever way it captures.
    pub fn enter(self) -> Admission {
        let Some(Deferred { policy, subject, settings }) = self.0 else { return Admission::skipped() };
        admission(policy.as_ref().map_err(|refused| *refused), &subject, settings.as_deref())
    }
}

impl DeferredCall<()> {
    /// Decides the call for these subjects, which are rendered only now: the main one, and the others by their labels.
    pub fn enter_with<const N: usize>(
        self,
        subjects: impl FnOnce(&Limiter) -> (Subject, [(&'static str, Subject); N]),
    ) -> Admission {
        let Some(Deferred { policy, mut settings, .. }) = self.0 else { return Admission::skipped() };
        let (subject, others) = subjects(limiter_of(settings.as_deref()));
        if let Some(settings) = &mut settings {
            settings.others = others.into();
        }
        DeferredCall(Some(Deferred { policy, subject, settings })).enter()
    }
}

impl CallSettings<'_> {
    fn limiter(&self) -> &Limiter {
        self.limiter.as_deref().unwrap_or_else(|| Limiter::installed())
    }

    fn check<'c>(&'c self, policy: &'c Policy, subject: &'c Subject) -> Check<'c> {
        let mut check = Check::new(self.limiter(), policy, subject, self.options);
        self.others.iter().for_each(|(label, subject)| check.insert_subject(label, subject));
        check
    }

    fn to_owned(&self) -> CallSettings<'static> {
        let limiter = self.limiter.as_deref().cloned().map(Cow::Owned);
        CallSettings { limiter, others: self.others.clone(), options: self.options }
    }
}

/// Decides a call, unless its policy is refused.
#[inline]
pub(super) fn admission(
    policy: Result<&Policy, &'static Rejection>,
    subject: &Subject,
    settings: Option<&CallSettings<'_>>,
) -> Admission {
    match policy {
        Ok(policy) => Admission::begin(check(policy, subject, settings)),
        Err(refused) => Admission::known(without_policy(refused, settings)),
    }
}

/// Decides such a call of a function that is not async.
#[inline]
pub(super) fn blocking_admission(
    policy: Result<&Policy, &'static Rejection>,
    subject: &Subject,
    settings: Option<&CallSettings<'_>>,
) -> Admitted {
    match policy {
        Ok(policy) => check(policy, subject, settings).blocking_admit(),
        Err(refused) => without_policy(refused, settings),
    }
}

#[cold]
fn without_policy(refused: &Rejection, settings: Option<&CallSettings<'_>>) -> Admitted {
    if settings.is_some_and(|settings| settings.options.shadow) { Ok(None) } else { Err(refused.clone()) }
}

#[inline]
fn check<'c>(policy: &'c Policy, subject: &'c Subject, settings: Option<&'c CallSettings<'_>>) -> Check<'c> {
    match settings {
        None => Limiter::installed().check(policy, subject),
        Some(settings) => settings.check(policy, subject),
    }
}

#[inline]
fn limiter_of<'c>(settings: Option<&'c CallSettings<'_>>) -> &'c Limiter {
    settings.map_or_else(|| Limiter::installed(), CallSettings::limiter)
}

#[cfg(test)]
mod tests {
    use super::super::{PolicyCell, installed};
    use super::*;

    #[tokio::test]
    async fn a_check_without_a_policy_is_an_error_however_it_is_used() {
        static POLICY: PolicyCell = PolicyCell::named("refused", "0 per 1s", &[]);
        let check = || POLICY.call(()).limiter(installed()).subject("network", &[], ()).check();
        let error = check().await.unwrap_err().to_string();
        assert!(error.starts_with("policy `refused`: rule 0:"), "{error}");
        assert!(check().peek().report().await.is_err());
        assert!(check().wait(Duration::from_millis(1)).await.is_err());
        assert!(check().reset().await.is_err());
        assert!(check().ban(Duration::from_secs(1)).await.is_err());
        assert!(check().unban().await.is_err());
    }
}
