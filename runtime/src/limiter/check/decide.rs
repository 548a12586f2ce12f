//! One decision: by this process if it can, else by the store.

use std::sync::Arc;

use super::Check;
use super::effective::Effective;
use crate::decision::{Charge, Decision, Denial, Permit, RefundTicket, RuleStatus};
use crate::error::BackendError;
use crate::policy::Policy;
#[cfg(feature = "redis")]
use crate::store::Redis;
use crate::store::{Answer, Memory, Outcome, Request, Store};

impl Check<'_> {
    /// Decides once, without waiting for admission.
    pub(super) async fn decide(&self) -> Result<Decision, BackendError> {
        match self.decide_local() {
            Some(decided) => decided,
            None => self.decide_remote().await,
        }
    }

    /// Decides a call that this process can decide by itself; `None` for any other.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unnecessary_wraps, reason = "without Redis it can decide any"))]
    #[inline]
    pub(super) fn decide_local(&self) -> Option<Result<Decision, BackendError>> {
        let Some(request) = self.plain_request() else { return self.decide_effective_local() };
        match &self.limiter.core.store {
            // Each outcome is written where it is returned: an answer that is passed on is copied again and again.
            Store::Memory(memory) => Some(match memory.outcome(request) {
                Ok(Outcome::Admitted) => Ok(Decision::Allowed(Permit::plain())),
                Ok(denied) => Ok(plain_decision(request.policy, denied)),
                Err(error) => Err(error),
            }),
            #[cfg(feature = "redis")]
            Store::Redis(_) => {
                let denied = self.limiter.core.cached_denial(request)?;
                Some(Ok(plain_decision(request.policy, denied)))
            }
        }
    }

    /// The same for any subjects, options and overrides.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unnecessary_wraps, reason = "without Redis it can decide any"))]
    #[inline(never)]
    fn decide_effective_local(&self) -> Option<Result<Decision, BackendError>> {
        let core = &self.limiter.core;
        let effective = match self.effective() {
            Ok(effective) => effective,
            Err(mistake) => return Some(Err(mistake)),
        };
        let closed = effective.closed(self.options);
        match &core.store {
            Store::Memory(memory) => Some(match closed {
                Some(closed) => Ok(plain_decision(&effective.policy, closed)),
                None => self.decide_in_memory(memory, &effective),
            }),
            // Whether an override still closes the limit is refreshed like anything else.
            #[cfg(feature = "redis")]
            Store::Redis(_) if closed.is_some() && core.overrides.is_due() => None,
            #[cfg(feature = "redis")]
            Store::Redis(_) => {
                let denied = closed.or_else(|| core.cached_denial(effective.request(self.options)))?;
                Some(Ok(plain_decision(&effective.policy, denied)))
            }
        }
    }

    /// Decides a call that this process cannot decide by itself.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unused_async, reason = "without Redis there is nothing to await"))]
    pub(super) async fn decide_remote(&self) -> Result<Decision, BackendError> {
        match &self.limiter.core.store {
            Store::Memory(memory) => self.decide_in_memory(memory, &self.effective()?),
            #[cfg(feature = "redis")]
            Store::Redis(redis) => self.decide_in_redis(redis).await,
        }
    }

    fn decide_in_memory(&self, memory: &Memory, effective: &Effective<'_>) -> Result<Decision, BackendError> {
        let request = effective.request(self.options);
        let answer = memory.decide(request)?;
        Ok(self.decision(request, with_closed(answer, effective)))
    }

    #[cfg(feature = "redis")]
    async fn decide_in_redis(&self, redis: &Redis) -> Result<Decision, BackendError> {
        let core = &self.limiter.core;
        let Some(mut refresh) = core.refresh_overrides() else {
            return self.ask_redis(redis).await;
        };
        // One deadline for both: the refresh of the overrides and the decision.
        let decided = redis.within_deadline(async {
            // The refresh ends by closing the channel.
            while refresh.changed().await.is_ok() {}
            self.ask_redis(redis).await
        });
        decided.await
    }

    #[cfg(feature = "redis")]
    async fn ask_redis(&self, redis: &Redis) -> Result<Decision, BackendError> {
        let core = &self.limiter.core;
        let effective = self.effective()?;
        if let Some(closed) = effective.closed(self.options) {
            return Ok(plain_decision(&effective.policy, closed));
        }
        let request = effective.request(self.options);
        let asked_us = core.clock.now_us();
        let answer = redis.decide(request).await?;
        core.cache_outcome(request, answer.outcome, asked_us);
        Ok(self.decision(request, with_closed(answer, &effective)))
    }

    fn decision(&self, request: Request<'_>, answer: Answer) -> Decision {
        let Answer { outcome, report, at_us } = answer;
        if outcome == Outcome::Admitted {
            let ticket = || self.refund_ticket(request, at_us);
            return Decision::Allowed(Permit::new(report, request.options.refundable.then(ticket)));
        }
        decision_of(request.policy, outcome, report)
    }

    fn refund_ticket(&self, request: Request<'_>, admitted_us: u64) -> RefundTicket {
        let Request { policy, subjects, options } = request;
        // A peek has counted nothing that could be removed.
        let cost = if options.peek { 0 } else { options.cost };
        let charge = Charge { policy: policy.clone(), subjects: subjects.to_vec(), cost, admitted_us };
        RefundTicket { refunder: Arc::clone(&self.limiter.core) as _, charge }
    }
}

/// At a limit that an override closes, the store is asked for a report at most.
fn with_closed(answer: Answer, effective: &Effective<'_>) -> Answer {
    Answer { outcome: effective.closed.unwrap_or(answer.outcome), ..answer }
}

/// The decision of a call that asks for nothing but the outcome.
#[inline]
fn plain_decision(policy: &Policy, outcome: Outcome) -> Decision {
    decision_of(policy, outcome, Vec::new())
}

#[inline]
fn decision_of(policy: &Policy, outcome: Outcome, report: Vec<RuleStatus>) -> Decision {
    let (rule, retry_after) = match outcome {
        Outcome::Denied { rule, retry_after } => (Some(rule), retry_after),
        Outcome::Banned { retry_after } => (None, retry_after),
        Outcome::Admitted => return Decision::Allowed(Permit::new(report, None)),
    };
    Decision::Denied(Denial::new(policy.clone(), rule, retry_after, report))
}
