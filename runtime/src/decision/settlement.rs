//! Settlements: a call counts as what it has used, in place of its cost.

use std::sync::Arc;

use tallygate_rules::CALLS;

use super::charge::{Charge, Recount, RecountTicket, Used};
use super::correction::Correction;
use super::decided_by::DecidedBy;
use super::meter::Meter;
use super::permit::{Permit, not_refundable};
use crate::error::BackendError;

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
    /// Fails as [`refund`](Self::refund) does, or because the call has reserved nothing: it had a cost of 0, was a peek, or
    /// all its rules count other units.
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
        self.settle_units(&[(CALLS, used)]).await
    }

    /// Settles as [`settle`](Self::settle) does, and blocks the calling thread meanwhile.
    ///
    /// # Errors
    ///
    /// Fails as [`settle`](Self::settle) does.
    pub fn blocking_settle(self, used: u64) -> Result<bool, BackendError> {
        self.blocking_settle_units(&[(CALLS, used)])
    }

    /// Settles the permit by unit: from now on, the call counts as what it has really used of the units that are named,
    /// instead of what they have cost. It costs what it did in the other units. `"calls"` names the cost of the call
    /// itself, as [`settle`](Self::settle) does.
    ///
    /// A unit in which the call has cost nothing is charged now, even beyond the limit: then the next calls of the subject
    /// wait until there is room again. In Redis, these units are asked for apart from the others: if one half fails, the
    /// other one is settled all the same. Apart from that, it works like [`settle`](Self::settle).
    ///
    /// Units with a [`meter`](Self::meter) that are not named count as what was added to it. While a meter of the call is in
    /// use, this returns `false`, and the last meter settles the call when it is dropped.
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
        self.correct(&Correction::Settle(used.into())).await
    }

    /// Settles as [`settle_units`](Self::settle_units) does, and blocks the calling thread meanwhile.
    ///
    /// # Errors
    ///
    /// Fails as [`settle_units`](Self::settle_units) does.
    pub fn blocking_settle_units(self, used: &[(&str, u64)]) -> Result<bool, BackendError> {
        self.blocking_correct(&Correction::Settle(used.into()))
    }

    /// Returns a meter of that unit: when this permit and all of its meters are dropped, the call is
    /// [settled](Self::settle_units) for what was added to them. `"calls"` names the cost of the call itself.
    ///
    /// Units of which no meter was asked for keep their cost. To await the settlement, drop the meters, and call
    /// `permit.settle_units(&[])`.
    ///
    /// # Errors
    ///
    /// The permit cannot be settled, as in [`settle_units`](Self::settle_units): the call was not
    /// [`refundable`](crate::Check::refundable), has reserved nothing, or its policy has no such unit.
    pub fn meter(&mut self, unit: &str) -> Result<Meter, BackendError> {
        let unit = self.unit_to_settle(unit)?;
        let metering = self.metering().ok_or_else(not_refundable)?;
        Ok(metering.meter(unit))
    }

    /// Returns `None` for a call that nobody has counted, or that a meter will settle.
    pub(super) fn into_settlement(
        mut self,
        used: &[(&str, u64)],
    ) -> Result<Option<(Box<RecountTicket>, Recount)>, BackendError> {
        let mut said = Used::default();
        for &(unit, used) in used {
            said.set(self.unit_to_settle(unit)?, used);
        }
        if let Some(metering) = self.take_metering() {
            return Ok(metering.settlement(said));
        }
        let ticket = self.into_ticket()?;
        Ok(ticket.is_counted().then_some((ticket, Recount::Settle(said))))
    }

    /// Returns a unit that can be settled; `None` for calls.
    pub(super) fn unit_to_settle(&self, unit: &str) -> Result<Option<Arc<str>>, BackendError> {
        let Charge { call, .. } = self.charge().ok_or_else(not_refundable)?;
        let unit = call.policy.unit(unit)?;
        let is_free =
            call.options.peek || unit.is_none() && (call.options.cost == 0 || call.policy.counts_only_units());
        if is_free && self.decided_by() != DecidedBy::Nobody {
            return Err(BackendError::misuse(match call.policy.units().next().filter(|_| !call.policy.counts_calls()) {
                Some(counted) => format!(
                    "no rule of policy `{}` counts calls, so there are none to settle; settle a unit, like \
                     `settle_units(&[({counted:?}, used)])`",
                    call.policy.name()
                ),
                None => {
                    "the call has reserved nothing, so there is nothing to settle; give it a `cost`, and do not peek"
                        .to_owned()
                }
            }));
        }
        Ok(unit)
    }
}
