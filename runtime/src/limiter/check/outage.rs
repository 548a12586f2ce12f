//! What becomes of a call that Redis does not decide.

use super::Check;
use super::decide::{plain_decision, with_closed};
use super::effective::{Effective, closed};
use crate::decision::{DecidedBy, Decision, Report};
use crate::error::BackendError;
use crate::observe::log;
use crate::store::{Answer, CallOptions, Outcome, PlainCall, Redis, Request};

impl Check<'_> {
    /// Decides a call that Redis did not decide, if its policy says so.
    #[cold]
    pub(super) fn decide_without_redis(&self, reason: BackendError, redis: &Redis) -> Result<Decision, BackendError> {
        let effective = self.effective()?;
        match self.limiter().core.outage.substitute(&effective.policy, reason.kind(), redis) {
            Some(substitute) => {
                log::decided_without_redis(self.policy().name(), substitute.as_str(), &reason);
                self.decide_by(substitute, &effective)
            }
            None => Err(reason),
        }
    }

    /// Decides a call at once, as Redis is known to be away. Now and then it does not, so that a call finds out whether that
    /// is still so.
    pub(super) fn decide_in_known_outage(&self, substitute: DecidedBy) -> Option<Result<Decision, BackendError>> {
        if self.limiter().core.outage.is_look_due(substitute) {
            return None;
        }
        let plain = self.plain().filter(|_| substitute == DecidedBy::Standby);
        match plain.and_then(|call| self.decide_plain_by_standby(call)) {
            None => Some(self.effective().and_then(|effective| self.decide_by(substitute, &effective))),
            decided => decided,
        }
    }

    #[inline]
    fn decide_plain_by_standby(&self, call: PlainCall<'_>) -> Option<Result<Decision, BackendError>> {
        let PlainCall { policy, subject, cost } = call;
        let standby = &self.limiter().core.outage.standby;
        let part = standby.part_of(policy);
        let outcome = standby.outcome(&part, subject, cost)?;
        if outcome != Outcome::Admitted
            && let Err(error) = standby.check_part(policy, &part, cost, outcome)
        {
            return Some(Err(error));
        }
        Some(Ok(plain_decision(&part, outcome, cost, DecidedBy::Standby)))
    }

    fn decide_by(&self, substitute: DecidedBy, effective: &Effective<'_>) -> Result<Decision, BackendError> {
        if let Some(closed) = effective.closed(self.options) {
            return Ok(plain_decision(&effective.policy, closed, self.options.cost, DecidedBy::Backend));
        }
        let request = effective.request(self.options);
        if substitute == DecidedBy::Nobody {
            return Ok(self.allow(request));
        }
        let (part, answer) = self.limiter().core.outage.standby.decide(request)?;
        let request = Request { policy: &part, ..request };
        Ok(self.decision_in_memory(request, with_closed(answer, effective), substitute))
    }

    /// Admits a call that nobody decides, unless its limit is closed.
    fn allow(&self, request: Request<'_>) -> Decision {
        // Nothing is counted, and so nothing refunded.
        let options = CallOptions { peek: true, ..request.options };
        let outcome = closed(request.policy).unwrap_or(Outcome::Admitted);
        let answer = Answer::new(outcome, Report::default(), 0);
        self.decision(Request { options, ..request }, answer, DecidedBy::Nobody)
    }
}
