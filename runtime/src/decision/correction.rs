//! Corrections of a call's count: refunds, and settlements.

use std::borrow::Cow;

use super::charge::{Recount, RecountTicket};
use super::permit::{Permit, not_refundable};
use crate::error::BackendError;

/// A correction of a call's count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Correction<'a> {
    /// Refunds the permit.
    Refund,
    /// Refunds the permit on the subject of that label, or on the main one.
    RefundOn(Option<&'a str>),
    /// Settles the call for what it has used of these units.
    Settle(Cow<'a, [(&'a str, u64)]>),
}

impl Permit {
    /// Refunds the permit: removes exactly the hits of this call, even if other calls were admitted since.
    ///
    /// Returns whether a rule still counted the call. Not removed are hits that are out of their window, tokens that
    /// have flowed into a bucket again, and hits of sliding windows with more than 1,024 later calls stored behind
    /// them. A call that was admitted while Redis was away is refunded in this process, where it was counted.
    ///
    /// Dropping a permit refunds nothing. If this future is dropped before it is ready, the hits may or may not have
    /// been removed; of several subjects, perhaps only those of some.
    ///
    /// # Errors
    ///
    /// * The backend did not answer within the deadline. The hits may have been removed or not; a second attempt is not
    ///   possible, as it could remove another call's hits.
    /// * The call was not [`refundable`](crate::Check::refundable).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
    /// let policy = Policy::builder("login").rule(Rule::sliding_window(1, Duration::from_secs(60))).build()?;
    ///
    /// let permit = limiter.check(&policy, &alice).refundable().await?.into_result()?;
    /// assert!(permit.refund().await?);
    /// assert!(limiter.check(&policy, &alice).await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn refund(self) -> Result<bool, BackendError> {
        self.correct(&Correction::Refund).await
    }

    /// Refunds the permit as [`refund`](Self::refund) does, and blocks the calling thread meanwhile: for functions that
    /// are not async. [`Check::blocking_decide`](crate::Check::blocking_decide) says on which threads.
    ///
    /// # Errors
    ///
    /// Fails as [`refund`](Self::refund) does.
    pub fn blocking_refund(self) -> Result<bool, BackendError> {
        self.blocking_correct(&Correction::Refund)
    }

    /// Refunds the permit on one of several subjects: removes the hits of this call that the rules with this label
    /// count, and leaves the others. [`PolicyBuilder::rule_on`](crate::PolicyBuilder::rule_on) sets the label of a
    /// rule.
    ///
    /// In the attribute, `refund_key = "…"` and `prevent_duplicate(release_if = …)` do this: a failed submission may be
    /// repeated at once, and its other limits still count it. Otherwise it works like [`refund`](Self::refund). If all
    /// rules with this label are in shadow, they are refunded, and the result is `false`.
    ///
    /// # Errors
    ///
    /// Fails as [`refund`](Self::refund) does, or because the policy has no rule with this label.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let (limiter, alice, order) = (Limiter::in_memory(), Subject::of("alice"), Subject::of("order").and(7));
    /// let policy = Policy::builder("orders")
    ///     .rule(Rule::sliding_window(2, Duration::from_secs(60)))
    ///     .rule_on("order", Rule::duplicate(Duration::from_secs(5)))
    ///     .build()?;
    /// let submit = || limiter.check(&policy, &alice).subject("order", &order).refundable();
    ///
    /// let permit = submit().await?.into_result()?;
    /// assert!(!submit().await?.is_allowed());
    /// // The order could not be placed.
    /// assert!(permit.refund_on("order").await?);
    /// assert!(submit().await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn refund_on(self, label: &str) -> Result<bool, BackendError> {
        self.correct(&Correction::RefundOn(Some(label))).await
    }

    /// Refunds as [`refund_on`](Self::refund_on) does, and blocks the calling thread meanwhile.
    ///
    /// # Errors
    ///
    /// Fails as [`refund_on`](Self::refund_on) does.
    pub fn blocking_refund_on(self, label: &str) -> Result<bool, BackendError> {
        self.blocking_correct(&Correction::RefundOn(Some(label)))
    }

    pub(crate) async fn correct(self, correction: &Correction<'_>) -> Result<bool, BackendError> {
        // Begun before the permit gives up its meters, so that `drain` always counts either.
        let _counted = self.begin_correction();
        match self.into_recount(correction)? {
            Some((mut ticket, recount)) => ticket.recount(&recount).await,
            None => Ok(false),
        }
    }

    pub(crate) fn blocking_correct(self, correction: &Correction<'_>) -> Result<bool, BackendError> {
        let _counted = self.begin_correction();
        self.into_recount(correction)?.map_or(Ok(false), |(ticket, recount)| ticket.blocking_recount(&recount))
    }

    /// Returns what is left to be recounted; `None` for a call that nobody has counted, or that a meter will settle.
    fn into_recount(self, correction: &Correction<'_>) -> Result<Option<(Box<RecountTicket>, Recount)>, BackendError> {
        match correction {
            Correction::Refund => Ok(Some((self.into_ticket()?, Recount::REFUND))),
            Correction::RefundOn(label) => self.into_subject_refund(*label).map(Some),
            Correction::Settle(used) => self.into_settlement(used),
        }
    }

    fn into_subject_refund(self, label: Option<&str>) -> Result<(Box<RecountTicket>, Recount), BackendError> {
        // The ticket is taken only now: a label by mistake must not close the meters of the call.
        let policy = self.policy().ok_or_else(not_refundable)?.clone();
        let counting = policy.groups().iter().take(policy.counting_groups());
        let group = { counting }.find(|group| group.label.as_deref() == label);
        if let Some(group) = group {
            return Ok((self.into_ticket()?, Recount::Refund(Some(group.label.clone()))));
        }
        if policy.has_trial_of(label) {
            return Ok((Box::new(self.into_ticket()?.of_trials(label)), Recount::REFUND));
        }
        let policy = policy.name();
        let subject = label.map_or("the main subject".to_owned(), |label| format!("`{label}`"));
        Err(BackendError::misuse(format!(
            "policy `{policy}` has no rule on {subject}; `refund` refunds all of its rules"
        )))
    }
}
