//! Waiting for admission.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::Role;

use super::Check;
use super::attempt::Attempt;
use crate::call::{Call, CallOptions, WaitLimit};
use crate::decision::{Decision, Denial, RejectionKind, RuleStatus};
use crate::error::BackendError;
use crate::limiter::lease_waiters::LeaseWaiter;
use crate::micros;
use crate::system::{Handle, is_own_thread};

/// How often a caller that waits for a lease asks whether one was freed in another process.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Check<'_> {
    /// Decides until the call is admitted, or cannot be by the deadline.
    pub(super) async fn wait_for_admission(&self, limit: WaitLimit) -> Result<Decision, BackendError> {
        if Handle::try_current().is_err() {
            return Err(BackendError::misuse(
                "waiting for admission needs a tokio runtime; without one, decide by `Check::blocking_decide`",
            ));
        }
        let clock = &self.limiter().core.clock;
        let deadline_us = match limit {
            WaitLimit::Within(duration) => clock.now_us().checked_add(micros::from_duration(duration)),
            WaitLimit::Unlimited => None,
        };
        let queues = &self.limiter().core.wait_queues;
        let key = self.queue_key()?;
        let mut retry = None;
        // Callers that find no queue ask at once, beside each other.
        if !queues.has(&key) {
            match self.try_once(deadline_us).await? {
                ControlFlow::Break(decision) => return Ok(decision),
                ControlFlow::Continue(next) => retry = Some(next),
            }
        }
        let place = queues.join(key);
        // On timeout, a queued caller checks once more and returns that result.
        let Some(_turn) = place.turn(clock, deadline_us).await else { return self.attempt().await };
        let mut waiter = None;
        loop {
            match (retry, &waiter) {
                (None, _) => {}
                (Some(Retry::At(time_us)), _) => {
                    waiter = None;
                    clock.sleep_until(time_us).await;
                }
                // From now on it is notified; whether a lease was freed before is found out at once.
                (Some(Retry::WhenFreed { .. }), None) => waiter = Some(self.wait_for_leases()?),
                (Some(Retry::WhenFreed { or_us }), Some(waiter)) => {
                    _ = clock.timeout_at(or_us, waiter.freed()).await;
                }
            }
            match self.try_once(deadline_us).await? {
                ControlFlow::Break(decision) => return Ok(decision),
                ControlFlow::Continue(next) => retry = Some(next),
            }
        }
    }

    /// Returns the decision, or when to try again.
    async fn try_once(&self, deadline_us: Option<u64>) -> Result<ControlFlow<Decision, Retry>, BackendError> {
        // A denial that is retried while waiting does not count towards a ban.
        let trial = self.policy().ban().is_some() && !self.options.peek;
        let decision = self.with_options(CallOptions { trial, ..self.options }).attempt().await?;
        if let Some(retry) = self.retry(&decision, deadline_us).await? {
            return Ok(ControlFlow::Continue(retry));
        }
        if !trial || decision.is_allowed() {
            return Ok(ControlFlow::Break(decision));
        }
        // One that is not is the answer, so it is asked for once more, and counts. Meanwhile there may be room again.
        let answer = self.attempt().await?;
        Ok(self.retry(&answer, deadline_us).await?.map_or(ControlFlow::Break(answer), ControlFlow::Continue))
    }

    /// When a denied call is tried again, if it may be admitted by the deadline.
    async fn retry(&self, decision: &Decision, deadline_us: Option<u64>) -> Result<Option<Retry>, BackendError> {
        let Decision::Denied(denial) = decision else { return Ok(None) };
        // Whether its wait is no more than the bound of a lease, such a denial does not tell.
        let is_unclear = !matches!(denial.kind(), RejectionKind::Limited | RejectionKind::Concurrency);
        let reported = if is_unclear && denial.policy().has_leases() { Some(self.reported().await?) } else { None };
        let now_us = self.limiter().core.clock.now_us();
        Ok(match reported.as_ref().unwrap_or(decision) {
            Decision::Allowed(_) => Retry::at(now_us, Duration::ZERO, deadline_us),
            Decision::Denied(denial) => denial.retry_after().and_then(|wait| {
                let retry = if waits_for_lease(denial) { Retry::when_freed } else { Retry::at };
                retry(now_us, wait, deadline_us)
            }),
        })
    }

    /// What would be decided now, and where each rule stands.
    async fn reported(&self) -> Result<Decision, BackendError> {
        let options = CallOptions { peek: true, report: true, refundable: false, ..self.options };
        self.with_options(options).attempt().await
    }

    fn with_options(&self, options: CallOptions) -> Self {
        Self { options, ..self.clone() }
    }

    /// Waits for the leases that this call needs. A peek takes none, but waits for them all the same.
    fn wait_for_leases(&self) -> Result<LeaseWaiter<'_>, BackendError> {
        let (core, attempt) = (&self.limiter().core, Attempt::new(self)?);
        let leases = attempt.call().tally_ids().skip(attempt.policy.counting_groups());
        Ok(core.lease_waiters.join(leases.map(|id| id.key(&core.prefix)).collect()))
    }

    /// What stands for the call in the wait queues: the keys of all its tallies. None of them has a line break. Behind a
    /// caller that awaits, one that blocks its thread would wait forever.
    fn queue_key(&self) -> Result<Arc<str>, BackendError> {
        let prefix = &self.limiter().core.prefix;
        let own = Call::new(self.policy(), self.inputs.subjects()?, self.options);
        let keys = own.tally_ids().map(|id| id.key(prefix));
        let joined = keys.fold(String::new(), |joined, key| joined + key.as_str() + "\n");
        Ok(if is_own_thread() { joined + "blocking" } else { joined }.into())
    }
}

/// Whether a denied call waits for a lease.
fn waits_for_lease(denial: &Denial) -> bool {
    let is_full = |status: &RuleStatus| status.rule().role() == Role::Concurrency && status.remaining() == 0;
    match denial.kind() {
        RejectionKind::Concurrency => true,
        // Among limits, the one with the longest wait is the reason.
        RejectionKind::Limited => false,
        _ => denial.report().iter().any(is_full),
    }
}

/// When a denied call is tried again.
#[derive(Clone, Copy)]
enum Retry {
    /// At that time.
    At(u64),
    /// When a lease is freed, but no later than at that time: what is freed in another process, nobody tells.
    WhenFreed { or_us: u64 },
}

impl Retry {
    /// After the wait, if that is by the deadline.
    fn at(now_us: u64, wait: Duration, deadline_us: Option<u64>) -> Option<Self> {
        let time_us = now_us.checked_add(micros::from_duration(wait))?;
        deadline_us.is_none_or(|deadline_us| time_us <= deadline_us).then_some(Self::At(time_us))
    }

    /// When a lease is freed. The wait is no more than a bound, so only the deadline ends it.
    fn when_freed(now_us: u64, wait: Duration, deadline_us: Option<u64>) -> Option<Self> {
        let or_us = now_us.checked_add(micros::from_duration(wait.min(LOOK_EVERY)))?;
        let latest_us = deadline_us.unwrap_or(u64::MAX);
        (now_us < latest_us).then_some(Self::WhenFreed { or_us: or_us.min(latest_us) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use crate::limiter::Limiter;
    use crate::policy::Policy;
    use crate::subject::Subject;

    #[tokio::test(start_paused = true)]
    async fn a_queue_is_removed_with_its_last_caller_however_that_one_leaves() {
        let limiter = Limiter::in_memory();
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(10))).build().unwrap();
        let subject = Subject::of("s");
        let lengths = || limiter.core.wait_queues.lengths();
        let second = Duration::from_secs(1);

        assert!(limiter.check(&policy, &subject).await.unwrap().is_allowed());
        assert_eq!(lengths(), [0_usize; 0], "a caller that is admitted at once joins no queue");
        for leaves_first in [0, 1] {
            let call = || {
                let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject.clone());
                tokio::spawn(async move { limiter.check(&policy, &subject).wait(20 * second).await.map(drop) })
            };
            // One sleeps, and one is queued behind it.
            let mut waiting = vec![call(), call()];
            tokio::time::sleep(second).await;
            assert_eq!(lengths(), [2]);
            for (leaves, left) in [(leaves_first, &[1][..]), (0, &[])] {
                let waiting = waiting.remove(leaves);
                waiting.abort();
                assert!(waiting.await.unwrap_err().is_cancelled());
                assert_eq!(lengths(), left);
            }
        }
        assert!(limiter.check(&policy, &subject).wait(10 * second).await.unwrap().is_allowed());
        assert_eq!(lengths(), [0_usize; 0]);
    }
}
