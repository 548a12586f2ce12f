//! Decides calls while the store below is away, as the policy says: by tallies of this process, or without any.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tallygate_rules::OnOutage;

use crate::call::{Call, PlainCall};
use crate::clock::Clock;
use crate::decision::{Charge, DecidedBy, Decision, Recount, Report};
use crate::error::{BackendError, BackendErrorKind};
use crate::micros;
use crate::observe::log;
use crate::policy::Policy;
use crate::store::{Answer, Decider, LayeredAnswer, Outcome, RemoteStore, Standby};
use crate::system::home::in_runtime;

/// How often a call asks the store, during an outage, whether it is back.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// Decides calls while the server is away.
pub(super) struct Outage<S, R> {
    below: S,
    server: Arc<R>,
    /// The setting for policies without one.
    default: OnOutage,
    standby: Arc<Standby>,
    clock: Clock,
    next_ask_us: AtomicU64,
}

/// The state of the store, as this process knows it before a call asks the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreState {
    /// The store may decide the call.
    There,
    /// The store is known to be away, and this call asks whether it still is.
    AskDue,
    /// The store is known to be away, and the call is decided in this way.
    Away(DecidedBy),
}

impl<S: Decider, R: RemoteStore> Outage<S, R> {
    pub(super) fn new(below: S, server: Arc<R>, on_outage: OnOutage, standby: Standby, clock: Clock) -> Self {
        let standby = Arc::new(standby);
        Self { below, server, default: on_outage, standby, clock, next_ask_us: AtomicU64::new(0) }
    }

    pub(super) fn below(&self) -> &S {
        &self.below
    }

    pub(super) fn server(&self) -> &R {
        &self.server
    }

    /// Returns the known state of the store for a call of this policy.
    pub(super) fn state_for(&self, policy: &Policy) -> StoreState {
        let known = self.server.known_outage().and_then(|reason| self.substitute(policy, reason));
        match known {
            None => StoreState::There,
            // Without a runtime, the store is asked, and returns the error that says so.
            Some(substitute) if self.is_ask_due(substitute) || in_runtime().is_err() => StoreState::AskDue,
            Some(substitute) => StoreState::Away(substitute),
        }
    }

    /// Returns who decides a call that the store failed to decide for `reason`; `None` if the call is rejected.
    pub(super) fn substitute(&self, policy: &Policy, reason: BackendErrorKind) -> Option<DecidedBy> {
        match (self.on_outage(policy), reason) {
            (OnOutage::Local, BackendErrorKind::Away) => Some(DecidedBy::Standby),
            // If the server has decided calls before, the setup is right.
            (OnOutage::Local, BackendErrorKind::Unknown) if self.server.has_decided() => Some(DecidedBy::Standby),
            (OnOutage::Allow, BackendErrorKind::Away) => Some(DecidedBy::Nobody),
            // A mistake never admits a call.
            _ => None,
        }
    }

    /// Decides a call at once, given the known state of the store; `None` if that needs an await.
    #[inline]
    pub(super) fn decide_at_once(
        &self,
        state: StoreState,
        call: Call<'_>,
    ) -> Option<Result<LayeredAnswer, BackendError>> {
        match state {
            StoreState::AskDue => None,
            StoreState::Away(substitute) => Some(self.decide_by(substitute, call)),
            StoreState::There => self.below.decide_at_once(call),
        }
    }

    /// Decides a call that the store failed to decide for `reason`, if its policy says so.
    ///
    /// # Errors
    ///
    /// Fails with `reason`, or because there is no room for a new subject, or the call costs more than one process may
    /// admit alone.
    #[cold]
    pub(super) fn decide_without(&self, reason: BackendError, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        let Some(substitute) = self.substitute(call.policy, reason.kind()) else { return Err(reason) };
        log::decided_without_redis(call.policy.name(), substitute.as_str(), &reason);
        self.decide_by(substitute, call)
    }

    fn decide_by(&self, substitute: DecidedBy, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        if substitute == DecidedBy::Nobody {
            let closed = Outcome::closed(call.policy, |at, group| group.unit.is_none() || call.needs_at(at) > 0);
            let outcome = closed.unwrap_or(Outcome::Admitted);
            let answer = Answer::new(outcome, Report::default(), 0);
            return Ok(LayeredAnswer { decided_by: substitute, ..answer.into() });
        }
        self.standby.decide(call)
    }

    /// Decides a plain call in place of the store; `None` if [`decide_at_once`](Self::decide_at_once) decides it.
    pub(super) fn decide_plain(
        &self,
        substitute: DecidedBy,
        call: PlainCall<'_>,
    ) -> Option<Result<Decision, BackendError>> {
        if substitute == DecidedBy::Standby { self.standby.decide_plain(call) } else { None }
    }

    /// Recounts a call that was admitted in place of the store. Returns whether that has changed anything.
    pub(super) fn recount_here(&self, charge: &Charge, recount: &Recount) -> bool {
        self.standby.recount(charge, recount)
    }

    fn on_outage(&self, policy: &Policy) -> OnOutage {
        policy.on_outage().unwrap_or(self.default)
    }

    /// Whether this call has to ask. To await the answer also gives the tasks time that repair the connection.
    fn is_ask_due(&self, substitute: DecidedBy) -> bool {
        // In a test that sets the clock, the time may stay the same from call to call.
        if self.clock.manual_us().is_some() || self.server.have_clocks_differed() {
            return true;
        }
        let now_us = match substitute {
            // Reading the clock once more would take half as long as the decision: the time of the previous decision is
            // enough.
            DecidedBy::Standby => self.standby.latest_us(),
            _ => self.clock.now_us(),
        };
        let is_due = now_us >= self.next_ask_us.load(Ordering::Relaxed);
        if is_due {
            self.next_ask_us.store(now_us.saturating_add(micros::from_duration(ASK_EVERY)), Ordering::Relaxed);
        }
        is_due
    }
}

impl<S: Decider, R: RemoteStore> Outage<S, R> {
    /// Returns how long the trace of the standby may deny the subjects, if the store goes away.
    pub(super) async fn reset(&self, call: Call<'_>) -> Result<Option<Duration>, BackendError> {
        // The tallies of this process are changed even while the store is away.
        let traced_here = self.standby.reset(call);
        self.below.reset(call).await.map(|()| traced_here)
    }

    /// Returns the same as [`reset`](Self::reset).
    pub(super) async fn ban(&self, call: Call<'_>, duration: Duration) -> Result<Option<Duration>, BackendError> {
        let is_local = self.on_outage(call.policy) == OnOutage::Local;
        let banned_here = if is_local { self.standby.ban(call, duration) } else { Ok(None) };
        let banned_below = self.below.ban(call, duration).await;
        banned_here.and_then(|traced_here| banned_below.map(|()| traced_here))
    }
}

#[cfg(test)]
mod tests;
