//! The layers that decide a call, each before the next, down to the store.
//!
//! A call is first offered to those that can decide it at once. If none can, it goes the same way again and awaits them.
//!
//! | layer | at once | by awaiting | in `limiter/` |
//! | --- | --- | --- | --- |
//! | overrides | the rules in force, as they are known | wait until they are refreshed, if they are too old | `check/attempt.rs`, `overrides/` |
//! | outage | decides while the store is known to be away | decides if the store did not | `outage.rs` |
//! | calls taken ahead | decide a call of one subject | decide for some of several subjects | `check/ahead.rs`, `ledgers/` |
//! | cached denials | deny | are recorded from the answer | `cached_denials.rs` |
//! | leases | hold what a concurrent call takes in this process | hold what it takes on a server | `leases.rs` |
//!
//! A store in memory decides every call at once. Of the layers, such a call meets only overrides and leases.

use super::Check;
use super::attempt::Attempt;
use super::inputs::Inputs;
use crate::call::{CallOptions, PlainCall};
use crate::decision::{DecidedBy, Decision};
use crate::error::BackendError;
use crate::limiter::outage::StoreState;
use crate::observe::log;
use crate::store::Outcome;
use crate::system::budget;

impl Check<'_> {
    /// Decides once, without waiting for admission.
    pub(super) async fn attempt(&self) -> Result<Decision, BackendError> {
        match self.attempt_in_process() {
            Some(decided) => decided,
            None => self.attempt_in_store().await,
        }
    }

    /// Decides a call that this process can decide by itself; `None` for any other.
    pub(super) fn attempt_in_process(&self) -> Option<Result<Decision, BackendError>> {
        let core = &self.limiter().core;
        if core.store.decides_at_once() {
            return match self.plain_outcome() {
                Some(outcome) => Some(Ok(outcome.decision(self.policy(), self.options.cost, DecidedBy::Backend))),
                None => Attempt::new(self).and_then(|attempt| attempt.decide_in_process()).transpose(),
            };
        }
        match core.outage.state_of(&core.store, self.policy()) {
            StoreState::LookDue => None,
            StoreState::Away(substitute) => {
                let decided = self.plain().and_then(|call| core.outage.decide_plain(substitute, call));
                Some(decided.unwrap_or_else(|| Attempt::new(self)?.decide_by_substitute(substitute)))
            }
            StoreState::There if self.lets_others_run() => None,
            StoreState::There => Attempt::new(self).map(|attempt| attempt.decide_at_once()).transpose(),
        }
    }

    /// The outcome in memory of a plain call.
    #[inline]
    pub(super) fn plain_outcome(&self) -> Option<Outcome> {
        self.limiter().core.store.outcome_at_once(self.plain()?)
    }

    /// Returns the short form of the call, which most calls have: they are decided by the policy's own rules, on one
    /// subject, and ask for nothing but the outcome. `None` for any other.
    #[inline]
    fn plain(&self) -> Option<PlainCall<'_>> {
        let Inputs::Borrowed { limiter, policy, subject } = self.inputs else { return None };
        let CallOptions { cost, report, peek, provisional, refundable, .. } = self.options;
        if report
            || peek
            || provisional
            || refundable
            || policy.warn_at().is_some()
            || policy.has_leases()
            || limiter.core.overrides.are_active()
        {
            return None;
        }
        Some(PlainCall { policy, subject, cost })
    }

    /// Decides a call that this process cannot decide by itself.
    pub(super) async fn attempt_in_store(&self) -> Result<Decision, BackendError> {
        match self.attempt_by_known_rules().await {
            Err(reason) => self.attempt_without_store(reason),
            decided => {
                self.register();
                decided
            }
        }
    }

    /// Decides by the rules in force, which are refreshed before if they are too old.
    async fn attempt_by_known_rules(&self) -> Result<Decision, BackendError> {
        let core = &self.limiter().core;
        let refresh = core.refresh_overrides();
        let attempt = Attempt::new(self)?;
        let Some(mut refresh) = refresh else { return attempt.decide_in_store().await };
        // The refresh of the overrides and the decision share one deadline.
        let decided = core.store.within_deadline(&attempt.policy, async {
            // However the refresh ends, the call asks then.
            let _ = refresh.changed().await;
            Attempt::new(self)?.decide_in_store().await
        });
        decided.await
    }

    /// Decides a call that the store did not decide, if its policy says so. A store in memory is never away.
    #[cold]
    pub(super) fn attempt_without_store(&self, reason: BackendError) -> Result<Decision, BackendError> {
        let core = &self.limiter().core;
        if core.store.decides_at_once() {
            return Err(reason);
        }
        let attempt = Attempt::new(self)?;
        let substitute = core.outage.substitute(&attempt.policy, reason.kind(), &core.store);
        let Some(substitute) = substitute else { return Err(reason) };
        log::decided_without_redis(self.policy().name(), substitute.as_str(), &reason);
        attempt.decide_by_substitute(substitute)
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

    /// Whether others run before this call is decided: what is taken ahead is asked for by a task that has to run, too, and
    /// callers that never wait would keep it from that.
    pub(super) fn lets_others_run(&self) -> bool {
        self.policy().prefetch().is_some() && self.limiter().core.ledgers.are_refilled() && budget::is_spent()
    }
}
