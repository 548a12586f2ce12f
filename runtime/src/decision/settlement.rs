//! Settlements: a call counts as what it has used, in place of its cost.

use std::sync::atomic::{AtomicBool, Ordering};

use tallygate_rules::MAX_EXACT;

use super::charge::{Recount, RecountTicket, Used};
use super::decided_by::DecidedBy;
use super::permit::{Permit, not_refundable};
use crate::error::BackendError;
use crate::observe::log;

impl Permit {
    /// Settles the permit: from now on, the call counts as what it has really used, instead of the cost that it has
    /// reserved. It asks the backend once; in a cluster, once for each subject, and several times for the logs of more
    /// than three subjects.
    ///
    /// Reserved cost that was not used is given back, as by [`refund`](Self::refund). Use beyond the cost is charged at
    /// the time of the call, even beyond the limit: then the subject has to wait longer. A token bucket in use is
    /// charged at the time of the settlement, whatever has flowed in since the call, and it is emptied at most. Under a
    /// sliding window, use beyond the cost counts with a later call if more than 1,024 later calls are stored behind
    /// this one. There, one call weighs at most the greatest `count` of this subject's windows, as they were for this
    /// call. A rule that has counted more than the greatest `count` of its algorithm may count no more than that, and
    /// no call has used more than 2^53 − 1. A duplicate rule counts the call as one, unless it has used nothing, which
    /// is a refund.
    ///
    /// Returns whether that has changed anything: what no longer counts stays as it is. A settlement counts no denial.
    /// It also warns nobody, now or later, if it brings the subject near a limit: [`Permit::warning`](Self::warning) of
    /// the next call still reports that. If this future is dropped before it is ready, the call may or may not have
    /// been settled; on several subjects, perhaps only on some.
    ///
    /// # Errors
    ///
    /// Fails as [`refund`](Self::refund) does, or because the call has reserved nothing: it had a cost of 0, or was a
    /// peek.
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
    /// let policy = Policy::builder("tokens").rule(Rule::sliding_window(1_000, Duration::from_secs(60))).build()?;
    /// let remaining = async || limiter.peek(&policy, &alice).await.map(|decision| decision.report()[0].remaining());
    ///
    /// let permit = limiter.check(&policy, &alice).cost(500).refundable().await?.into_result()?;
    /// permit.settle(120).await?;
    /// assert_eq!(remaining().await?, 880);
    ///
    /// let permit = limiter.check(&policy, &alice).cost(500).refundable().await?.into_result()?;
    /// permit.settle(2_000).await?;
    /// assert_eq!(remaining().await?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn settle(self, used: u64) -> Result<bool, BackendError> {
        match self.into_settlement(Used { calls: Some(used), ..Used::default() })? {
            Some((ticket, recount)) => ticket.recount(recount).await,
            None => Ok(false),
        }
    }

    /// Settles as [`settle`](Self::settle) does, and blocks the calling thread meanwhile.
    ///
    /// # Errors
    ///
    /// Fails as [`settle`](Self::settle) does.
    pub fn blocking_settle(self, used: u64) -> Result<bool, BackendError> {
        self.into_settlement(Used { calls: Some(used), ..Used::default() })?
            .map_or(Ok(false), |(ticket, recount)| ticket.blocking_recount(&recount))
    }

    /// Settles the permit by unit: from now on, the call counts as what it has really used of the units that are named,
    /// instead of what they have cost. It costs what it did in the other units. `"calls"` names the cost of the call
    /// itself, as [`settle`](Self::settle) does.
    ///
    /// A unit in which the call has cost nothing is charged now, even beyond the limit: then the next calls of the subject
    /// wait until there is room again. Apart from that, it works like [`settle`](Self::settle).
    ///
    /// # Errors
    ///
    /// Fails as [`settle`](Self::settle) does, or because the policy has no such unit.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let minute = Duration::from_secs(60);
    /// let policy = Policy::builder("chat")
    ///     .rule(Rule::sliding_window(60, minute))
    ///     .rule(Rule::sliding_window(20_000, minute).counting("tokens"))
    ///     .build()?;
    /// let (limiter, alice) = (Limiter::in_memory(), Subject::of("alice"));
    ///
    /// let permit = limiter.check(&policy, &alice).cost_of("tokens", 4_000).refundable().await?.into_result()?;
    /// permit.settle_units(&[("tokens", 1_200)]).await?;
    /// let report = limiter.peek(&policy, &alice).await?;
    /// assert_eq!([report.report()[0].used(), report.report()[1].used()], [1, 1_200]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn settle_units(self, used: &[(&str, u64)]) -> Result<bool, BackendError> {
        let used = self.used_units(used)?;
        match self.into_settlement(used)? {
            Some((ticket, recount)) => ticket.recount(recount).await,
            None => Ok(false),
        }
    }

    /// Settles as [`settle_units`](Self::settle_units) does, and blocks the calling thread meanwhile.
    ///
    /// # Errors
    ///
    /// Fails as [`settle_units`](Self::settle_units) does.
    pub fn blocking_settle_units(self, used: &[(&str, u64)]) -> Result<bool, BackendError> {
        let used = self.used_units(used)?;
        self.into_settlement(used)?.map_or(Ok(false), |(ticket, recount)| ticket.blocking_recount(&recount))
    }

    fn used_units(&self, used: &[(&str, u64)]) -> Result<Used, BackendError> {
        let policy = &self.charge().ok_or_else(not_refundable)?.call.policy;
        let mut all = Used::default();
        let mut units = Vec::with_capacity(used.len());
        for &(unit, used) in used {
            match policy.unit(unit)? {
                None => all.calls = Some(used),
                Some(unit) => units.push((unit, used)),
            }
        }
        Ok(Used { units: units.into(), ..all })
    }

    /// Fails if the permit cannot be settled.
    pub(super) fn check_can_be_settled(&self) -> Result<(), BackendError> {
        let charge = self.charge().ok_or_else(not_refundable)?;
        if charge.call.options.cost == 0 && self.decided_by() != DecidedBy::Nobody {
            let message =
                "the call has reserved nothing, so there is nothing to settle; give it a `cost`, and do not peek";
            return Err(BackendError::misuse(message));
        }
        Ok(())
    }

    /// Returns `None` for a call that nobody has counted.
    pub(super) fn into_settlement(self, used: Used) -> Result<Option<(RecountTicket, Recount)>, BackendError> {
        if used.calls.is_some() {
            self.check_can_be_settled()?;
        }
        if self.decided_by() == DecidedBy::Nobody {
            return Ok(None);
        }
        let calls = used.calls.map(|used| used.min(MAX_EXACT));
        let units = used.units.into_iter().map(|(unit, used)| (unit, used.min(MAX_EXACT))).collect();
        Ok(Some((*self.into_ticket()?, Recount::Settle(Used { calls, units }))))
    }
}

/// Reports a failed settlement: use beyond the cost is never counted.
pub(crate) fn report_settlement(policy: &str, settled: Result<bool, BackendError>) {
    /// Whether the last settlement of this process has failed.
    static FAILING: AtomicBool = AtomicBool::new(false);
    let was_failing = FAILING.swap(settled.is_err(), Ordering::Relaxed);
    if let Err(error) = settled {
        log::not_settled(policy, &error, !was_failing);
    }
}
