//! The store below, and the leases that go back to it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use super::returns::{LimiterId, ReturnUnderWay};
use crate::call::{Call, OwnedCall, ReturnedLeases};
use crate::clock::Clock;
use crate::error::BackendError;
use crate::micros;
use crate::observe::log;
use crate::sleepers::Sleepers;
use crate::store::{LayeredAnswer, RemoteStore};
use crate::system::home::Runtimes;
use crate::system::under_way::TaskKind;

/// The pause before leases are given back again after a failure. It doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The most calls without an answer whose leases are given back at a time.
const MOST_LATE: usize = 1_000;

/// The store below, and what it takes to give leases back to it.
pub(super) struct LeasedStore<S> {
    pub(super) below: Arc<S>,
    pub(super) limiter: LimiterId,
    pub(super) prefix: String,
    pub(super) clock: Clock,
    pub(super) sleepers: Arc<Sleepers>,
    pub(super) runtimes: Arc<Runtimes>,
    /// The number of calls without an answer whose leases are being given back.
    pub(super) late: AtomicUsize,
}

/// Leases that are to be given back. If the runtime ends before that, the thread of the limiter gives them back.
pub(super) struct LeaseReturn<S: RemoteStore> {
    shared: Arc<LeasedStore<S>>,
    leases: OwnedCall,
    /// `None` once it is done, or left to the thread of the limiter.
    under_way: Option<ReturnUnderWay>,
}

impl<S: RemoteStore> LeasedStore<S> {
    /// Decides a call. Leases of its subjects that are on their way back are given back before.
    pub(super) async fn decide(&self, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        let carried = self.limiter.carry(call, &self.prefix);
        if carried.is_empty() {
            return self.below.decide(call).await;
        }
        // The future is boxed because it is rare: no other call carries its state.
        Box::pin(self.decide_behind(call, &carried)).await
    }

    async fn decide_behind(&self, call: Call<'_>, carried: &[ReturnedLeases]) -> Result<LayeredAnswer, BackendError> {
        let below = &self.below;
        let (mut given_back, mut decided) = (pin!(below.give_back(call.policy, carried)), pin!(below.decide(call)));
        let mut returned = None;
        // The first poll of each future puts it on the connection, in this order.
        let answer = poll_fn(|context| {
            if returned.is_none()
                && let Poll::Ready(outcome) = given_back.as_mut().poll(context)
            {
                returned = Some(outcome);
            }
            decided.as_mut().poll(context)
        })
        .await;
        if !matches!(returned, Some(Ok(()))) {
            self.limiter.lose(carried);
        }
        answer
    }

    /// Gives leases back, and tries again until they end by themselves.
    pub(super) async fn give_back(&self, leases: Call<'_>, ends_us: u64) {
        let clock = &self.clock;
        let returned = leases.returned_leases(&self.prefix);
        let mut pause = FIRST_PAUSE;
        while let Err(error) = self.below.give_back(leases.policy, &returned).await {
            let next_us = clock.now_us().saturating_add(micros::from_duration(pause));
            if next_us >= ends_us {
                log::lease_not_given_back(leases.policy.name(), &error);
                break;
            }
            clock.sleep_until(next_us).await;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
        self.sleepers.wake_one(leases);
    }

    /// How long after the question Redis may still execute the call: one deadline to charge it, and in a cluster another
    /// one to undo that.
    pub(super) fn patience_us(&self, call: Call<'_>) -> u64 {
        micros::from_duration(2 * self.below.deadline_of(call.policy))
    }
}

impl<S: RemoteStore> LeaseReturn<S> {
    pub(super) fn new(shared: &Arc<LeasedStore<S>>, leases: &OwnedCall) -> Self {
        let under_way = ReturnUnderWay::begin(leases.as_call(), &shared.prefix);
        Self { shared: Arc::clone(shared), leases: leases.clone(), under_way }
    }

    pub(super) async fn run(mut self, ends_us: u64) {
        self.shared.give_back(self.leases.as_call(), ends_us).await;
        self.under_way = None;
    }

    async fn run_on_thread(shared: Arc<LeasedStore<S>>, leases: OwnedCall, under_way: ReturnUnderWay) {
        let ends_us = shared.clock.now_us().saturating_add(longest_us(leases.as_call()));
        shared.give_back(leases.as_call(), ends_us).await;
        drop(under_way);
    }
}

impl<S: RemoteStore> Drop for LeaseReturn<S> {
    fn drop(&mut self) {
        let Some(under_way) = self.under_way.take() else { return };
        let returned = Self::run_on_thread(Arc::clone(&self.shared), self.leases.clone(), under_way);
        self.shared.runtimes.spawn_on_thread(TaskKind::Lease, returned);
    }
}

/// The leases of a call without an answer. They are given back when Redis can no longer execute the call. If there is no place,
/// they end by themselves.
pub(super) struct LateReturn<'a, S: RemoteStore> {
    leases: Call<'a>,
    since_us: u64,
    shared: &'a LeasedStore<S>,
    _place: LatePlace<'a>,
    _under_way: Option<ReturnUnderWay>,
}

impl<'a, S: RemoteStore> LateReturn<'a, S> {
    /// Returns `None` if there is no place, or no lease.
    pub(super) fn begin(shared: &'a LeasedStore<S>, call: &'a OwnedCall, since_us: u64) -> Option<Self> {
        let leases = call.as_call().leases()?;
        let place = LatePlace::take(&shared.late)?;
        Some(Self {
            leases,
            since_us,
            shared,
            _place: place,
            _under_way: ReturnUnderWay::begin(leases, &shared.prefix),
        })
    }

    pub(super) async fn run(self) {
        let over_us = self.since_us.saturating_add(self.shared.patience_us(self.leases));
        self.shared.clock.sleep_until(over_us).await;
        self.shared.give_back(self.leases, over_us.saturating_add(longest_us(self.leases))).await;
    }
}

/// A place among the calls whose answers did not come. It is free again also if the runtime ends before.
struct LatePlace<'a>(&'a AtomicUsize);

impl<'a> LatePlace<'a> {
    /// Takes a place, if there is one.
    fn take(late: &'a AtomicUsize) -> Option<Self> {
        let place = Self(late);
        (late.fetch_add(1, Ordering::Relaxed) < MOST_LATE).then_some(place)
    }
}

impl Drop for LatePlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long the longest of the leases lasts.
pub(super) fn longest_us(leases: Call<'_>) -> u64 {
    leases.groups().iter().filter_map(|group| group.lease_us).max().unwrap_or_default()
}
