//! Leases in Redis, which a task of their own keeps.
//!
//! The task renews them after half of their length while the permit is there, and then gives them back. A process that dies
//! takes its tasks along: then the leases end by themselves.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::LeasedCall;
use crate::decision::Lease;
use crate::error::BackendError;
use crate::limiter::core::Core;
use crate::micros;
use crate::observe::log;
use crate::store::{LeaseChange, Redis, Request, Store};

/// How long after a failure leases are given back again: as long at first, and then longer.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How many calls at most are given back at a time whose answers did not come.
const MOST_LATE: usize = 1_000;

/// So many attempts to renew a lease have their time while it lasts. Each has to be answered until the next one.
const ATTEMPTS: u64 = 8;

/// A call that may have taken leases: its answer is not there yet. Dropping it gives them back.
pub(in crate::limiter) struct Asked {
    core: Arc<Core>,
    /// `None` once the answer is there.
    call: Option<LeasedCall>,
    runtime: Handle,
    /// When it was asked, by the clock of the limiter.
    since_us: u64,
}

/// Leases that a task keeps. Dropping it ends the task.
struct Kept {
    _dropped: oneshot::Sender<()>,
    call: Arc<LeasedCall>,
}

impl Core {
    /// Returns what gives the leases of a call back whose answer does not come.
    pub(in crate::limiter) fn asks_for_leases(self: &Arc<Self>, request: Request<'_>) -> Option<Asked> {
        self.redis()?;
        let call = LeasedCall::of(request)?;
        let runtime = Handle::try_current().ok()?;
        Some(Asked { core: Arc::clone(self), call: Some(call), runtime, since_us: self.clock.now_us() })
    }

    fn redis(&self) -> Option<&Redis> {
        match &self.store {
            Store::Memory(_) => None,
            Store::Redis(redis) => Some(redis),
        }
    }

    /// Renews leases until the permit is dropped, and then gives them back.
    async fn keep(self: Arc<Self>, call: Arc<LeasedCall>, asked_us: u64, mut dropped: oneshot::Receiver<()>) {
        let (Some(redis), Some(request)) = (self.redis(), call.request()) else { return };
        let Some((shortest_us, longest_us)) = lengths_us(request) else { return };
        let mut renew_us = asked_us.saturating_add(shortest_us / 2);
        let mut ends_us = self.clock.now_us().saturating_add(longest_us);
        // Until then, a renewal may be executed that was not answered.
        let mut open_until_us = 0;
        while self.clock.timeout_at(renew_us, &mut dropped).await.is_none() {
            let now_us = self.clock.now_us();
            let again_us = now_us.saturating_add(shortest_us / ATTEMPTS);
            let renewed = redis.change_leases(request, LeaseChange::Renewed);
            let renewed = self.clock.timeout_at(again_us, renewed).await.unwrap_or_else(|| Err(silent()));
            renew_us = if renewed.is_ok() { now_us.saturating_add(shortest_us / 2) } else { again_us };
            // What has failed may have been executed all the same.
            ends_us = self.clock.now_us().saturating_add(longest_us);
            if let Err(error) = renewed {
                open_until_us = self.clock.now_us().saturating_add(patience_us(redis, &call));
                log::lease_not_renewed(call.policy.name(), &error);
            }
        }
        self.give_back(request, ends_us).await;
        if self.clock.now_us() < open_until_us {
            self.clock.sleep_until(open_until_us).await;
            self.give_back(request, ends_us).await;
        }
    }

    /// Gives leases back, and tries again until they end by themselves.
    async fn give_back(&self, request: Request<'_>, ends_us: u64) {
        let Some(redis) = self.redis() else { return };
        let mut pause = FIRST_PAUSE;
        while let Err(error) = redis.change_leases(request, LeaseChange::GivenBack).await {
            let next_us = self.clock.now_us().saturating_add(micros::from_duration(pause));
            if next_us >= ends_us {
                log::lease_not_given_back(request.policy.name(), &error);
                break;
            }
            self.clock.sleep_until(next_us).await;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
        self.tell_released(request);
    }

    /// Gives the leases of a call back whose answer did not come, once it is not executed any more.
    async fn give_back_late(self: Arc<Self>, call: LeasedCall, asked_us: u64, _place: Late) {
        if let (Some(redis), Some(request)) = (self.redis(), call.request())
            && let Some((_, longest_us)) = lengths_us(request)
        {
            let over_us = asked_us.saturating_add(patience_us(redis, &call));
            self.clock.sleep_until(over_us).await;
            self.give_back(request, over_us.saturating_add(longest_us)).await;
        }
    }
}

/// One of the calls at a time whose answers did not come. Its place is free again also if the runtime ends before.
struct Late(Arc<Core>);

impl Late {
    /// Takes a place, if there is one.
    fn of(core: &Arc<Core>) -> Option<Self> {
        let place = Self(Arc::clone(core));
        (core.late.fetch_add(1, Ordering::Relaxed) < MOST_LATE).then_some(place)
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        self.0.late.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long a call may be executed after it was asked: in a cluster, what was charged is taken back within as long again.
fn patience_us(redis: &Redis, call: &LeasedCall) -> u64 {
    2 * micros::from_duration(redis.deadline_of(&call.policy))
}

impl Asked {
    /// The call was admitted.
    pub(in crate::limiter) fn taken(mut self) -> Option<Lease> {
        let call = Arc::new(self.call.take()?);
        let (sender, dropped) = oneshot::channel();
        self.runtime.spawn(Arc::clone(&self.core).keep(Arc::clone(&call), self.since_us, dropped));
        call.policy.observed().lease_taken();
        Some(Box::new(Kept { _dropped: sender, call }))
    }

    /// The call was denied, or was not executed.
    pub(in crate::limiter) fn not_taken(mut self) {
        self.call = None;
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        // Without a place, the leases end by themselves.
        if let Some(place) = Late::of(&self.core) {
            self.runtime.spawn(Arc::clone(&self.core).give_back_late(call, self.since_us, place));
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.call.policy.observed().lease_given_back();
    }
}

fn silent() -> BackendError {
    BackendError::away("redis: no answer before the lease is to be renewed again")
}

/// How long the shortest of the leases lasts, and the longest.
fn lengths_us(request: Request<'_>) -> Option<(u64, u64)> {
    let lengths = || request.groups().iter().filter_map(|group| group.lease_us);
    Some((lengths().min()?, lengths().max()?))
}

#[cfg(test)]
mod tests {
    use tallygate_rules::Rule;
    use tokio::runtime::Builder;

    use super::*;
    use crate::limiter::Limiter;
    use crate::policy::Policy;
    use crate::store::{CallOptions, LeaseName};
    use crate::subject::Subject;

    #[test]
    fn a_runtime_that_ends_takes_no_place_of_lost_answers_along() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        // Nobody asks the server.
        let limiter = Limiter::builder().connect_lazy("redis://127.0.0.1:1/").unwrap();
        let policy = Policy::builder("p").rule(Rule::concurrency(1, Duration::from_secs(60))).build().unwrap();
        let options = CallOptions { lease: Some(LeaseName::next()), ..CallOptions::PLAIN };
        let late = || limiter.core.late.load(Ordering::Relaxed);
        runtime.block_on(async {
            let asked = limiter.core.asks_for_leases(Request::new(&policy, &[Subject::of("s").key()], options));
            assert!(asked.is_some());
        });
        assert_eq!(late(), 1);
        drop(runtime);
        assert_eq!(late(), 0);
    }
}
