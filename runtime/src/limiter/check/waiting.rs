//! Waiting for admission.

use std::ops::ControlFlow;

use tokio::runtime::Handle;

use super::Check;
use crate::clock::Clock;
use crate::decision::Decision;
use crate::error::BackendError;
use crate::micros;
use crate::store::{TallyKey, WaitLimit};

impl Check<'_> {
    /// Decides until the call is admitted, or cannot be by the deadline.
    pub(super) async fn wait_for_admission(&self, limit: WaitLimit) -> Result<Decision, BackendError> {
        if Handle::try_current().is_err() {
            return Err(BackendError::new("waiting for admission needs a tokio runtime"));
        }
        let clock = &self.limiter.core.clock;
        let deadline_us = match limit {
            WaitLimit::Within(duration) => clock.now_us().checked_add(micros::from_duration(duration)),
            WaitLimit::Unlimited => None,
        };
        let queues = &self.limiter.core.wait_queues;
        let key = &self.queue_key()?;
        let mut retry_us = None;
        // Callers that find no queue ask at once, beside each other.
        if !queues.has(key) {
            match self.attempt(deadline_us).await? {
                ControlFlow::Break(decision) => return Ok(decision),
                ControlFlow::Continue(time_us) => retry_us = Some(time_us),
            }
        }
        let place = queues.join(key);
        // On timeout, a queued caller checks once more and returns that result.
        let Some(_turn) = place.turn(clock, deadline_us).await else { return self.decide().await };
        loop {
            if let Some(time_us) = retry_us {
                clock.sleep_until(time_us).await;
            }
            match self.attempt(deadline_us).await? {
                ControlFlow::Break(decision) => return Ok(decision),
                ControlFlow::Continue(time_us) => retry_us = Some(time_us),
            }
        }
    }

    /// Returns the decision, or the time of the next attempt.
    async fn attempt(&self, deadline_us: Option<u64>) -> Result<ControlFlow<Decision, u64>, BackendError> {
        let clock = &self.limiter.core.clock;
        // Denials that are retried while waiting do not count towards a ban.
        if self.denials_count()
            && let Some(time_us) = retry_time_us(&self.as_peek().decide().await?, clock, deadline_us)
        {
            return Ok(ControlFlow::Continue(time_us));
        }
        let decision = self.decide().await?;
        Ok(retry_time_us(&decision, clock, deadline_us).map_or(ControlFlow::Break(decision), ControlFlow::Continue))
    }

    /// Whether a denial of this call counts towards a ban.
    fn denials_count(&self) -> bool {
        self.policy.ban().is_some() && !self.options.peek
    }

    /// The key that stands for the call in the wait queues.
    fn queue_key(&self) -> Result<TallyKey, BackendError> {
        let own = self.own()?;
        let mut ids = own.request(self.options).tally_ids();
        let first = ids.next().ok_or_else(|| BackendError::new("a call needs a subject"))?;
        Ok(first.key(&self.limiter.core.prefix))
    }
}

/// When a denied call may be admitted, if that is by the deadline.
fn retry_time_us(decision: &Decision, clock: &Clock, deadline_us: Option<u64>) -> Option<u64> {
    let Decision::Denied(denial) = decision else { return None };
    let time_us = clock.now_us().checked_add(micros::from_duration(denial.retry_after()?))?;
    deadline_us.is_none_or(|deadline_us| time_us <= deadline_us).then_some(time_us)
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
