//! Lowers what is left of a rule, because the other side says that less is left.

use std::time::Duration;

use tallygate_rules::{MAX_EXACT, Role};

use super::charge::{Recount, RecountTicket, Remainder};
use super::permit::{Permit, not_refundable};
use crate::error::BackendError;
use crate::micros;

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
