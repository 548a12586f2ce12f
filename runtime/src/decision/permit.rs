//! The proof that a call was admitted, which may be refunded.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::rule_status::RuleStatus;
use crate::error::BackendError;
use crate::policy::Policy;
use crate::subject::SubjectKey;

/// The proof that a call was admitted.
pub struct Permit {
    // Boxed, so that a permit without extras, as most are, is one word to move and to drop.
    extras: Option<Box<Extras>>,
}

/// What a call asked for beside the permit.
struct Extras {
    report: Vec<RuleStatus>,
    refund: Option<RefundTicket>,
}

/// What an admitted call was counted as.
pub(crate) struct Charge {
    pub(crate) policy: Policy,
    pub(crate) subjects: Vec<SubjectKey>,
    pub(crate) cost: u64,
    /// By the clock of the store.
    pub(crate) admitted_us: u64,
}

/// The outcome of a refund, when it is known: whether there was anything to take back.
pub(crate) type Refunded<'a> = Pin<Box<dyn Future<Output = Result<bool, BackendError>> + Send + 'a>>;

/// Takes charges back. A permit does not know the limiter that issued it, only that it can do this.
pub(crate) trait Refunder: Send + Sync {
    fn refund<'a>(&'a self, charge: &'a Charge) -> Refunded<'a>;
}

/// What it takes to refund a permit.
pub(crate) struct RefundTicket {
    pub(crate) refunder: Arc<dyn Refunder>,
    pub(crate) charge: Charge,
}

impl Permit {
    /// A permit without extras.
    #[inline]
    pub(crate) fn plain() -> Self {
        Self { extras: None }
    }

    pub(crate) fn new(report: Vec<RuleStatus>, refund: Option<RefundTicket>) -> Self {
        let has_extras = refund.is_some() || !report.is_empty();
        Self { extras: has_extras.then(|| Box::new(Extras { report, refund })) }
    }

    /// Returns where every rule stands after the call, if [`Check::report`](crate::Check::report) asked for it; else
    /// nothing.
    #[must_use]
    pub fn report(&self) -> &[RuleStatus] {
        self.extras.as_ref().map_or(&[], |extras| &extras.report)
    }

    /// Refunds the permit: removes exactly the hits of this call, also when other calls were admitted since.
    ///
    /// Returns whether a rule still counted the call. Hits that are out of their window stay where they are, and so do tokens
    /// that have flowed into a bucket again. Dropping a permit refunds nothing, and neither does dropping this future before
    /// it is ready.
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
        let Some(RefundTicket { refunder, charge }) = self.extras.and_then(|extras| extras.refund) else {
            return Err(BackendError::new("this permit cannot be refunded; ask for it with `Check::refundable`"));
        };
        refunder.refund(&charge).await
    }

    /// The policy that admitted the call, if the permit can be refunded.
    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.extras.as_ref()?.refund.as_ref().map(|ticket| &ticket.charge.policy)
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("refundable", &self.policy().is_some()).finish_non_exhaustive()
    }
}
