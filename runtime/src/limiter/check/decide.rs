//! One decision: by this process if it can, else by the store.

use std::sync::Arc;

use super::Check;
use super::effective::Effective;
use super::inputs::Inputs;
use crate::decision::{AdmittedAt, Charge, DecidedBy, Decision, Denial, Permit, RefundTicket, Refunder, Report, Wait};
use crate::error::BackendError;
use crate::policy::Policy;
use crate::store::{Answer, CallOptions, Memory, Outcome, PlainCall, Redis, Request, Store};

impl Check<'_> {
    /// Decides once, without waiting for admission.
    pub(super) async fn decide(&self) -> Result<Decision, BackendError> {
        match self.decide_local() {
            Some(decided) => decided,
            None => self.decide_remote().await,
        }
    }

    /// Decides a call that this process can decide by itself; `None` for any other.
    pub(super) fn decide_local(&self) -> Option<Result<Decision, BackendError>> {
        let core = &self.limiter().core;
        match &core.store {
            Store::Memory(memory) => Some(match self.plain_outcome() {
                Some(outcome) => Ok(plain_decision(self.policy(), outcome, self.options.cost, DecidedBy::Backend)),
                None => self.decide_effective_in_memory(memory),
            }),
            Store::Redis(redis) => match core.outage.known_substitute(self.policy(), redis) {
                Some(substitute) => self.decide_in_known_outage(substitute),
                None => self.decide_by_known_denial(),
            },
        }
    }

    /// What most calls consist of: those that are decided by the policy's own rules, on one subject, and ask for nothing but
    /// the outcome. `None` for any other.
    #[inline]
    pub(super) fn plain(&self) -> Option<PlainCall<'_>> {
        let Inputs::Borrowed { limiter, policy, subject } = self.inputs else { return None };
        let CallOptions { cost, report, peek, trial, refundable, .. } = self.options;
        if report
            || peek
            || trial
            || refundable
            || policy.warn_at().is_some()
            || policy.has_leases()
            || limiter.core.overrides.are_active()
        {
            return None;
        }
        Some(PlainCall { policy, subject, cost })
    }

    /// The outcome in memory of a plain call.
    #[inline]
    pub(super) fn plain_outcome(&self) -> Option<Outcome> {
        let PlainCall { policy, subject, cost } = self.plain()?;
        match &self.limiter().core.store {
            Store::Memory(memory) => memory.outcome(policy, subject, cost),
            Store::Redis(_) => None,
        }
    }

    fn decide_effective_in_memory(&self, memory: &Memory) -> Result<Decision, BackendError> {
        let effective = self.effective()?;
        match effective.closed(self.options) {
            Some(closed) => Ok(plain_decision(&effective.policy, closed, self.options.cost, DecidedBy::Backend)),
            None => self.decide_in_memory(memory, &effective),
        }
    }

    /// Denies a call of which this process knows that Redis would deny it.
    fn decide_by_known_denial(&self) -> Option<Result<Decision, BackendError>> {
        let core = &self.limiter().core;
        let effective = match self.effective() {
            Ok(effective) => effective,
            Err(mistake) => return Some(Err(mistake)),
        };
        let closed = effective.closed(self.options);
        let denied = closed.or_else(|| core.cached_denial(effective.request(self.options)))?;
        // An override may end such denials, so a flood of them refreshes the overrides like any other calls. They go on
        // meanwhile without Redis, unless the known overrides are so old that every call waits for the refresh.
        if core.refresh_overrides().is_some() {
            return None;
        }
        if closed.is_none() {
            self.policy().observed().cached_denial();
        }
        Some(Ok(plain_decision(&effective.policy, denied, self.options.cost, DecidedBy::Backend)))
    }

    /// Decides a call that this process cannot decide by itself.
    pub(super) async fn decide_remote(&self) -> Result<Decision, BackendError> {
        match &self.limiter().core.store {
            Store::Memory(memory) => self.decide_in_memory(memory, &self.effective()?),
            Store::Redis(redis) => match self.decide_in_redis(redis).await {
                Err(reason) => self.decide_without_redis(reason, redis),
                decided => {
                    self.register();
                    decided
                }
            },
        }
    }

    /// Lists the policy in Redis, in the background, unless this is known to be done.
    #[inline]
    fn register(&self) {
        let core = &self.limiter().core;
        let policy = self.policy().origin();
        if !core.registrations.is_done(policy) && !self.options.peek {
            core.register(policy, self.options.shadow);
        }
    }

    fn decide_in_memory(&self, memory: &Memory, effective: &Effective<'_>) -> Result<Decision, BackendError> {
        let request = effective.request(self.options);
        let answer = memory.decide(request)?;
        Ok(self.decision_in_memory(request, with_closed(answer, effective), DecidedBy::Backend))
    }

    /// The decision with the leases that the call has taken in this process.
    pub(super) fn decision_in_memory(&self, request: Request<'_>, answer: Answer, decided_by: DecidedBy) -> Decision {
        // Held before the application hears of a warning: if it panics, they are given back.
        let is_admitted = answer.outcome == Outcome::Admitted;
        let leases = is_admitted.then(|| self.limiter().core.leases_in_memory(request, decided_by)).flatten();
        match self.decision(request, answer, decided_by) {
            Decision::Allowed(permit) => Decision::Allowed(permit.holding(leases)),
            denied @ Decision::Denied(_) => denied,
        }
    }

    async fn decide_in_redis(&self, redis: &Redis) -> Result<Decision, BackendError> {
        let core = &self.limiter().core;
        let Some(mut refresh) = core.refresh_overrides() else {
            return self.ask_redis(redis).await;
        };
        // One deadline for both: the refresh of the overrides and the decision.
        let decided = redis.within_deadline(&self.effective()?.policy, async {
            // However the refresh ends, the call asks then.
            let _ = refresh.changed().await;
            self.ask_redis(redis).await
        });
        decided.await
    }

    async fn ask_redis(&self, redis: &Redis) -> Result<Decision, BackendError> {
        let core = &self.limiter().core;
        let effective = self.effective()?;
        if let Some(closed) = effective.closed(self.options) {
            return Ok(plain_decision(&effective.policy, closed, self.options.cost, DecidedBy::Backend));
        }
        let request = effective.request(self.options);
        let asked_us = core.clock.now_us();
        let (answer, leases) = match core.ask_for_leases(request) {
            None => (redis.decide(request).await?, None),
            Some(asking) => asking.answer().await?,
        };
        core.cache_outcome(request, answer.outcome, asked_us);
        Ok(match self.decision(request, with_closed(answer, &effective), DecidedBy::Backend) {
            Decision::Allowed(permit) => Decision::Allowed(permit.holding(leases)),
            denied @ Decision::Denied(_) => denied,
        })
    }

    pub(super) fn decision(&self, request: Request<'_>, answer: Answer, decided_by: DecidedBy) -> Decision {
        let Answer { outcome, report, at, .. } = answer;
        if outcome == Outcome::Admitted {
            self.limiter().core.warnings.tell(request, &report);
            let ticket = || self.refund_ticket(request, at, decided_by);
            let permit = Permit::new(report, request.options.refundable.then(ticket), decided_by);
            return Decision::Allowed(permit.warning_at(request.policy.warn_at()));
        }
        decision_of(request.policy, outcome, request.options.cost, report, decided_by)
    }

    fn refund_ticket(&self, request: Request<'_>, admitted: AdmittedAt, decided_by: DecidedBy) -> RefundTicket {
        let Request { policy, subjects, options, .. } = request;
        // A peek has counted nothing that could be removed.
        let cost = if options.peek { 0 } else { options.cost };
        let charge = Charge {
            policy: policy.clone(),
            subjects: subjects.to_vec(),
            cost,
            admitted,
            #[cfg(feature = "web")]
            is_shadow: options.shadow,
        };
        RefundTicket { refunder: self.refunder(decided_by), charge }
    }

    /// Returns what takes a charge back: whatever has counted it.
    fn refunder(&self, decided_by: DecidedBy) -> Arc<dyn Refunder> {
        let core = &self.limiter().core;
        if decided_by != DecidedBy::Backend {
            return Arc::clone(&core.outage.standby) as _;
        }
        Arc::clone(core) as _
    }
}

/// At a limit that an override closes, the store is asked for a report at most.
pub(super) fn with_closed(answer: Answer, effective: &Effective<'_>) -> Answer {
    Answer { outcome: effective.closed.unwrap_or(answer.outcome), ..answer }
}

/// The decision of a call that asks for nothing but the outcome.
#[inline]
pub(crate) fn plain_decision(policy: &Policy, outcome: Outcome, cost: u64, decided_by: DecidedBy) -> Decision {
    match outcome {
        Outcome::Admitted => Decision::Allowed(Permit::plain(decided_by)),
        outcome => decision_of(policy, outcome, cost, Report::default(), decided_by),
    }
}

fn decision_of(policy: &Policy, outcome: Outcome, cost: u64, report: Report, decided_by: DecidedBy) -> Decision {
    let denied = |rule: Option<u32>, retry_after: Wait, report: Report| {
        let denial = Denial::new(policy.clone(), rule, retry_after, report);
        Decision::Denied(denial.with_cost(cost).with_decided_by(decided_by))
    };
    match outcome {
        Outcome::Admitted => Decision::Allowed(Permit::new(report, None, decided_by)),
        Outcome::Denied { rule, retry_after } => denied(Some(rule), retry_after, report),
        Outcome::Banned { retry_after } => denied(None, retry_after, report),
    }
}
