//! The proof that a call was admitted, which may be refunded.

use std::sync::Arc;

use super::charge::{Charge, Recount, RefundTicket};
use super::decided_by::DecidedBy;
use super::report::{Report, RuleStatus};
use crate::error::BackendError;
use crate::observe::opaque_debug;
use crate::policy::Policy;

/// The proof that a call was admitted.
///
/// Where concurrent calls are counted, by [`Rule::concurrency`](crate::Rule::concurrency), the call is running until its
/// permit is dropped. Refunding or settling a permit takes it, and so ends the call, too.
pub struct Permit {
    // An `Arc`, although no permit shares them: to drop a permit without extras, as most are, is one test, as the rest is
    // code of its own.
    extras: Option<Arc<PermitExtras>>,
    decided_by: DecidedBy,
}

/// What a permit holds while its call is running: the leases of a concurrent call. Dropping it gives them back.
pub(crate) type Lease = Box<dyn Send + Sync>;

/// What a call asked for beside the permit.
struct PermitExtras {
    report: Report,
    /// The share of a limit from which the subject is near it.
    warn_at: Option<f64>,
    /// Boxed, as few calls can be refunded, and it is large.
    refund: Option<Box<RefundTicket>>,
    /// Held until the permit is dropped, where concurrent calls are counted.
    lease: Option<Lease>,
}

impl Permit {
    /// A permit without extras.
    #[inline]
    pub(crate) const fn plain(decided_by: DecidedBy) -> Self {
        Self { extras: None, decided_by }
    }

    /// A permit with a report, of a policy that warns from that share on; with what refunds it, and the leases that it holds.
    pub(crate) fn new(
        decided_by: DecidedBy,
        report: Report,
        warn_at: Option<f64>,
        refund: Option<Box<RefundTicket>>,
        lease: Option<Lease>,
    ) -> Self {
        let is_plain = report.is_empty() && refund.is_none() && lease.is_none();
        let extras = (!is_plain).then(|| Arc::new(PermitExtras { report, warn_at, refund, lease }));
        Self { extras, decided_by }
    }

    /// Returns who admitted the call: the backend, or what takes its place while Redis is away.
    #[must_use]
    pub fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// Returns where every rule stands after the call whose count is known, if [`Check::report`](crate::Check::report) asked for it, or the
    /// policy [warns](crate::PolicyBuilder::warn_at); else nothing.
    #[must_use]
    pub fn report(&self) -> &[RuleStatus] {
        self.extras.as_ref().map_or(&[], |extras| extras.report.rules())
    }

    /// Where the rules in shadow stand.
    pub(super) fn tried(&self) -> &[RuleStatus] {
        self.extras.as_ref().map_or(&[], |extras| extras.report.tried())
    }

    /// Adds where the rules in shadow stand.
    pub(super) fn with_tried(self, tried: Vec<RuleStatus>) -> Self {
        let decided_by = self.decided_by;
        let Some(extras) = self.extras.and_then(Arc::into_inner) else {
            return Self::new(decided_by, Report::default().with_tried(tried), None, None, None);
        };
        let PermitExtras { report, warn_at, refund, lease } = extras;
        Self::new(decided_by, report.with_tried(tried), warn_at, refund, lease)
    }

    /// Returns where the rule stands whose limit the subject is near after this call: of several the one of which the
    /// smallest share remains. `None` if it is near none, or if the policy has no
    /// [`warn_at`](crate::PolicyBuilder::warn_at).
    #[must_use]
    pub fn warning(&self) -> Option<&RuleStatus> {
        let share = self.extras.as_ref()?.warn_at?;
        let near = self.report().iter().filter(|status| status.is_near(share));
        // Each product compares two shares: what remains of one limit and of the other.
        near.min_by(|one, other| {
            let scaled = |of: &RuleStatus, by: &RuleStatus| u128::from(of.remaining()) * u128::from(by.limit());
            scaled(one, other).cmp(&scaled(other, one))
        })
    }

    /// Refunds the permit: removes exactly the hits of this call, also when other calls were admitted since.
    ///
    /// Returns whether a rule still counted the call. Hits that are out of their window stay where they are, and so do tokens
    /// that have flowed into a bucket again, and hits of sliding windows behind which more than 1,024 later calls are
    /// stored. What was admitted while Redis was away is refunded where it was counted: in this process.
    ///
    /// Dropping a permit refunds nothing. If this future is dropped before it is ready, the hits may have been removed or not,
    /// on several subjects also on some of them alone.
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
        self.into_ticket()?.recount(Recount::REFUND).await
    }

    /// Refunds the permit as [`refund`](Self::refund) does, and blocks the calling thread meanwhile: for functions that are
    /// not async. As to threads, see [`Check::blocking_decide`](crate::Check::blocking_decide).
    ///
    /// # Errors
    ///
    /// As of [`refund`](Self::refund).
    pub fn blocking_refund(self) -> Result<bool, BackendError> {
        self.into_ticket()?.blocking_recount(Recount::REFUND)
    }

    /// Refunds the permit on one of several subjects: removes the hits of this call that the rules of that label count, which
    /// [`PolicyBuilder::rule_on`](crate::PolicyBuilder::rule_on) set, and leaves the others.
    ///
    /// In the attribute, `refund_key = "…"` does this, and so does `prevent_duplicate(release_if = …)`: a failed submission may be
    /// repeated at once, and its other limits still count it. Else it is as [`refund`](Self::refund). Where all rules of that
    /// label are in shadow, these are refunded, and the answer is `false`.
    ///
    /// # Errors
    ///
    /// As of [`refund`](Self::refund); and the policy has no rule of that label.
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
        self.refund_subject(Some(label)).await
    }

    /// Does the same as [`refund_on`](Self::refund_on), and blocks the calling thread meanwhile.
    ///
    /// # Errors
    ///
    /// As of [`refund_on`](Self::refund_on).
    pub fn blocking_refund_on(self, label: &str) -> Result<bool, BackendError> {
        self.blocking_refund_subject(Some(label))
    }

    /// Refunds the permit on the subject of that label, or on the main one.
    pub(crate) async fn refund_subject(self, label: Option<&str>) -> Result<bool, BackendError> {
        let (ticket, recount) = self.into_subject_refund(label)?;
        ticket.recount(recount).await
    }

    /// Does the same, and blocks the calling thread meanwhile.
    pub(crate) fn blocking_refund_subject(self, label: Option<&str>) -> Result<bool, BackendError> {
        let (ticket, recount) = self.into_subject_refund(label)?;
        ticket.blocking_recount(recount)
    }

    fn into_subject_refund(self, label: Option<&str>) -> Result<(RefundTicket, Recount), BackendError> {
        let ticket = self.into_ticket()?;
        let policy = &ticket.charge.call.policy;
        let counting = policy.groups().iter().take(policy.counting_groups());
        let group = { counting }.position(|group| group.label.as_deref() == label);
        if group.is_some() {
            return Ok((*ticket, Recount { part: group, ..Recount::REFUND }));
        }
        if policy.tries_calls_of(label) {
            return Ok((ticket.of_trials(label), Recount::REFUND));
        }
        let policy = policy.name();
        let subject = label.map_or("the main subject".to_owned(), |label| format!("`{label}`"));
        Err(BackendError::misuse(format!(
            "policy `{policy}` has no rule on {subject}; `refund` refunds all of its rules"
        )))
    }

    pub(super) fn into_ticket(self) -> Result<Box<RefundTicket>, BackendError> {
        let ticket = self.extras.and_then(Arc::into_inner).and_then(|extras| extras.refund);
        ticket.ok_or_else(not_refundable)
    }

    /// Returns this permit, which also takes back what was counted by rules that are tried out.
    pub(crate) fn with_trials(mut self, tried: Vec<Self>) -> Self {
        let ticket = self.extras.as_mut().and_then(Arc::get_mut).and_then(|extras| extras.refund.as_mut());
        if let Some(ticket) = ticket {
            ticket.trials =
                tried.into_iter().filter_map(|permit| permit.into_ticket().ok()).map(|ticket| *ticket).collect();
        }
        self
    }

    /// Splits the permit into what can be refunded or settled, and what keeps the call running.
    pub(crate) fn split(self) -> (Self, Self) {
        let decided_by = self.decided_by;
        let Some(extras) = self.extras.and_then(Arc::into_inner) else {
            return (Self::plain(decided_by), Self::plain(decided_by));
        };
        let PermitExtras { report, warn_at, refund, lease } = extras;
        let counted = Self::new(decided_by, report, warn_at, refund, None);
        (counted, Self::new(decided_by, Report::default(), None, None, lease))
    }

    /// Returns what the call was counted as, if the permit can be refunded.
    pub(crate) fn charge(&self) -> Option<&Charge> {
        self.extras.as_ref()?.refund.as_ref().map(|ticket| &ticket.charge)
    }

    /// The policy that admitted the call, if the permit can be refunded.
    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.charge().map(|charge| &charge.call.policy)
    }
}

pub(super) fn not_refundable() -> BackendError {
    BackendError::misuse("this permit cannot be refunded; ask for it with `Check::refundable`")
}

opaque_debug!(Permit, permit => { refundable: permit.policy().is_some() });
