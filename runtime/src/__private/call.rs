//! A call that has more than a policy and a subject.

use std::borrow::Cow;
use std::time::Duration;

use super::entering::Entering;
use super::extras::Extras;
use super::kept::Kept;
use super::values::{Texts, Values, subject};
use crate::decision::Rejection;
use crate::error::BackendError;
use crate::limiter::{Check, Limiter};
use crate::policy::Policy;
use crate::store::{CallOptions, WaitLimit};
use crate::subject::Subject;

/// How one call is decided, where the attribute has more than rules and a key.
#[derive(Debug)]
pub struct LimitedCall<'a> {
    policy: Result<Cow<'a, Policy>, &'static Rejection>,
    subject: Subject,
    extras: Option<Extras<'a>>,
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
        Self { policy, subject, extras: None }
    }

    /// Chooses the limiter.
    #[inline]
    pub fn limiter(&mut self, limiter: &'a Limiter) -> &mut Self {
        self.extras().limiter = Some(Cow::Borrowed(limiter));
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
        self.extras().others.push((label, subject(key, values)));
        self
    }

    /// Sets the weight.
    ///
    /// It is the element of an array, because the compiler then underlines it alone when its type is wrong.
    #[inline]
    pub fn cost(&mut self, [cost]: [u64; 1]) -> &mut Self {
        self.extras().options.cost = cost;
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
        self.extras().options.wait = Some(WaitLimit::Within(limit));
        self
    }

    /// Asks for a permit that can be refunded.
    #[inline]
    pub fn refundable(&mut self) -> &mut Self {
        self.extras().options.refundable = true;
        self
    }

    /// Runs the call whatever is decided.
    #[inline]
    pub fn shadow(&mut self) -> &mut Self {
        self.extras().options.shadow = true;
        self
    }

    /// Decides the call.
    pub fn enter(&self) -> Entering {
        let policy = self.policy.as_deref().map_err(|refused| *refused);
        Extras::enter(self.extras.as_ref(), policy, &self.subject)
    }

    /// Returns the call for a future that decides it later.
    #[must_use]
    pub fn keep(&self) -> Kept {
        self.keep_with(self.subject.clone())
    }

    /// Returns the call for a future that renders its subjects, too.
    #[must_use]
    pub fn keep_without_subject(&self) -> Kept<()> {
        self.keep_with(())
    }

    fn keep_with<S>(&self, subject: S) -> Kept<S> {
        let policy = self.policy.as_deref().cloned().map_err(|refused| *refused);
        Kept::new(policy, subject, self.extras.as_ref().map(Extras::owned))
    }

    /// Returns the check of the call, which owns all that it needs.
    ///
    /// If the policy is refused, awaiting the check is an error.
    pub fn check(&self) -> Check<'static> {
        match &self.policy {
            Ok(policy) => Extras::question(self.extras.as_ref(), policy, &self.subject).owned_check(),
            Err(refused) => {
                let error = refused.backend_error().cloned();
                let error = error.unwrap_or_else(|| BackendError::misuse(refused.to_string()));
                let limiter = Extras::limiter(self.extras.as_ref()).clone();
                Check::without_policy(Cow::Owned(limiter), refused.policy().to_owned(), error)
            }
        }
    }

    #[inline]
    fn extras(&mut self) -> &mut Extras<'a> {
        self.extras.get_or_insert(Extras { limiter: None, others: Vec::new(), options: CallOptions::PLAIN })
    }
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
