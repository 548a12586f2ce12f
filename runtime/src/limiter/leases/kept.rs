//! Leases in Redis, which a task of their own keeps.
//!
//! The task renews them after half of their length while the permit is there, and then gives them back. A process that dies
//! takes its tasks along: then the leases end by themselves.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::LeasedCall;
use crate::error::BackendError;
use crate::limiter::core::Core;
use crate::micros;
use crate::observe::log;
use crate::store::{LeaseChange, Redis, Request, Store};

/// How long after a failure leases are given back again: as long at first, and then longer.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// So many attempts to renew a lease have their time while it lasts. Each has to be answered until the next one.
const ATTEMPTS: u64 = 8;

/// Leases that a task keeps. Dropping it lets the task give them back.
pub(super) struct HeldLeases {
    _dropped: oneshot::Sender<()>,
    call: Arc<LeasedCall>,
}

impl HeldLeases {
    /// The leases that a call has taken, and what tells the task that they were dropped.
    pub(super) fn new(call: &Arc<LeasedCall>) -> (Self, oneshot::Receiver<()>) {
        let (sender, dropped) = oneshot::channel();
        call.policy.observed().lease_taken();
        (Self { _dropped: sender, call: Arc::clone(call) }, dropped)
    }
}

impl Core {
    pub(super) fn redis(&self) -> Option<&Redis> {
        match &self.store {
            Store::Memory(_) => None,
            Store::Redis(redis) => Some(redis),
        }
    }

    /// Renews leases until the permit is dropped, and then gives them back.
    pub(super) async fn keep(&self, call: &LeasedCall, asked_us: u64, mut dropped: oneshot::Receiver<()>) {
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
                open_until_us = self.clock.now_us().saturating_add(patience_us(redis, call));
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
    pub(super) async fn give_back(&self, request: Request<'_>, ends_us: u64) {
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
}

/// How long a call may be executed after it was asked: in a cluster, what was charged is taken back within as long again.
pub(super) fn patience_us(redis: &Redis, call: &LeasedCall) -> u64 {
    2 * micros::from_duration(redis.deadline_of(&call.policy))
}

impl Drop for HeldLeases {
    fn drop(&mut self) {
        self.call.policy.observed().lease_given_back();
    }
}

fn silent() -> BackendError {
    BackendError::away("redis: no answer before the lease is to be renewed again")
}

/// How long the shortest of the leases lasts, and the longest.
pub(super) fn lengths_us(request: Request<'_>) -> Option<(u64, u64)> {
    let lengths = || request.groups().iter().filter_map(|group| group.lease_us);
    Some((lengths().min()?, lengths().max()?))
}
