//! The proof that a call was admitted, which may be given back.

use crate::backend::Request;
use crate::decision::RuleReport;
use crate::key::Short;
use crate::{Limiter, Outage, Policy};

/// The proof that a call was admitted.
#[derive(Debug)]
pub struct Permit {
    // Boxed, so that a permit with nothing to say, as most are, is one word to move about and to drop.
    said: Option<Box<Said>>,
}

/// What a permit was asked for beside being one.
#[derive(Debug)]
struct Said {
    report: Vec<RuleReport>,
    ticket: Option<Ticket>,
}

/// What it takes to give a permit back.
#[derive(Debug)]
pub(crate) struct Ticket {
    limiter: Limiter,
    policy: Policy,
    subjects: Vec<Short>,
    cost: u64,
    admitted_us: u64,
}

impl Permit {
    /// A permit that has nothing to say.
    #[inline]
    pub(crate) fn plain() -> Self {
        Self { said: None }
    }

    pub(crate) fn new(report: Vec<RuleReport>, ticket: Option<Ticket>) -> Self {
        let says = ticket.is_some() || !report.is_empty();
        Self { said: says.then(|| Box::new(Said { report, ticket })) }
    }

    pub(crate) fn report(&self) -> &[RuleReport] {
        self.said.as_ref().map_or(&[], |said| &said.report)
    }

    /// Gives the permit back: takes back exactly the hits of this call, also long after others followed.
    ///
    /// Returns whether there was anything to take back: hits that are out of every window are not. Dropping a permit gives
    /// nothing back, and neither does dropping the future of this.
    ///
    /// # Errors
    ///
    /// The storage did not answer within the deadline: the hits may be taken back or not, and asking again is not
    /// possible, as it could take back another call's. Or the call was not
    /// [`refundable`](crate::Check::refundable).
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
    /// let permit = limiter.check(&policy, &alice).refundable().await?.permit()?;
    /// assert!(permit.refund().await?);
    /// assert!(limiter.check(&policy, &alice).await?.is_allowed());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn refund(self) -> Result<bool, Outage> {
        let Some(ticket) = self.said.and_then(|said| said.ticket) else {
            return Err(Outage::new("this permit cannot be given back; ask for it with `Check::refundable`"));
        };
        let Ticket { limiter, policy, subjects, cost, admitted_us } = ticket;
        let request = Request { policy: &policy, subjects: &subjects, cost, report: false, peek: false };
        let refunded = limiter.backend().refund(request, admitted_us).await;
        limiter.forget_denials(request);
        refunded
    }

    /// The policy that admitted the call, if the permit can be given back.
    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.said.as_ref()?.ticket.as_ref().map(|ticket| &ticket.policy)
    }
}

impl Ticket {
    pub(crate) fn new(limiter: Limiter, policy: Policy, subjects: Vec<Short>, cost: u64, admitted_us: u64) -> Self {
        Self { limiter, policy, subjects, cost, admitted_us }
    }
}
