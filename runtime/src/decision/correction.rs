//! Corrections of a call's count: refunds, settlements, and what the other side says is left.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::{CALLS, MAX_EXACT, Role};

use super::charge::{Charge, Recount, RecountTicket, Remainder, Used};
use super::decided_by::DecidedBy;
use super::meter::Meter;
use super::permit::{Permit, not_refundable};
use crate::error::BackendError;
use crate::micros;

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

/// Settlements: the call counts as what it has used, in place of its cost.
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
    fn into_settlement(mut self, used: &[(&str, u64)]) -> Result<Option<(Box<RecountTicket>, Recount)>, BackendError> {
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
    fn unit_to_settle(&self, unit: &str) -> Result<Option<Arc<str>>, BackendError> {
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

/// Lowers what is left of a rule, because the other side says that less is left.
impl Permit {
    /// Leaves at most `remaining` of the rule at that [position](crate::RuleStatus::position), because the side that was called
    /// says that no more is left until its `reset`: others have called it, too. The call stays counted, and its permit usable.
    /// It asks the backend once.
    ///
    /// The rule then counts more, never more than its count, and never less than before: what several calls hear of the same
    /// limit counts once. A sliding window counts it with the first of its calls that leaves the window at the reset or
    /// later, unless more than 1,024 calls are stored after that one. Any other rule counts it as it counts a call of now.
    /// If the rule would count it for longer than twice the time until the reset, nothing changes: the other side has more
    /// again long before. Rules of the same unit and subject that count in sliding windows count it, too. A window that
    /// counts this call no more stays as it is, and so does a unit in which the call has cost nothing.
    ///
    /// With [`prefetch`](crate::PolicyBuilder::prefetch), what was taken ahead counts as used, and may still be sent.
    ///
    /// Returns whether that has changed anything.
    ///
    /// # Errors
    ///
    /// * The backend did not answer within the deadline. It may be said again.
    /// * The call was not [`refundable`](crate::Check::refundable), or there is no limit at that position.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let (limiter, partner, minute) = (Limiter::in_memory(), Subject::of("partner"), Duration::from_secs(60));
    /// let policy = Policy::builder("calls").rule(Rule::sliding_window(100, minute)).build()?;
    /// let permit = limiter.check(&policy, &partner).refundable().await?.into_result()?;
    /// // The partner answers that 7 are left for 40 seconds.
    /// assert!(permit.leave_at_most(0, 7, Duration::from_secs(40)).await?);
    /// assert_eq!(limiter.peek(&policy, &partner).await?.report()[0].remaining(), 7);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn leave_at_most(&self, position: usize, remaining: u64, reset: Duration) -> Result<bool, BackendError> {
        let _counted = self.begin_correction();
        match self.leaving(position, remaining, reset)? {
            Some((ticket, remainder)) => ticket.clone().recount(&Recount::Leave(remainder)).await,
            None => Ok(false),
        }
    }

    /// Does what `leave_at_most` does, in the background where the backend has to be asked. A permit that cannot be
    /// refunded changes nothing.
    #[cfg(feature = "client")]
    pub(crate) fn begin_leaving(&self, position: usize, remaining: u64, reset: Duration) {
        if let Ok(Some((ticket, remainder))) = self.leaving(position, remaining, reset) {
            ticket.clone().leave_unawaited(remainder);
        }
    }

    fn leaving(
        &self,
        position: usize,
        remaining: u64,
        reset: Duration,
    ) -> Result<Option<(&RecountTicket, Remainder)>, BackendError> {
        let ticket = self.ticket().ok_or_else(not_refundable)?;
        let policy = &ticket.charge.call.policy;
        let limit = policy.rules().get(position).filter(|rule| rule.role() == Role::Limit);
        let (Some(_), Some(group)) = (limit, policy.group_of(position)) else {
            return Err(BackendError::misuse(format!(
                "policy `{}` has no limit at position {position}; take the `position` from a report",
                policy.name()
            )));
        };
        let counted = policy.groups().get(group);
        let place = counted.and_then(|counted| counted.positions.iter().position(|own| *own == position));
        let reset_us = micros::rounded_up(reset).min(MAX_EXACT);
        let remainder = place.map(|place| Remainder { group, place, most: remaining, reset_us });
        Ok(remainder.filter(|_| reset_us > 0).map(|remainder| (ticket, remainder)))
    }
}
