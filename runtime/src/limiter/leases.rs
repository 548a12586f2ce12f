//! The leases of concurrent calls: held by the permit of a call, and given back when it is dropped.
//!
//! A call that takes leases in Redis has a task of its own. The task decides the call, so that its answer arrives even if the
//! caller has gone: leases that nobody holds are given back at once. While the permit exists, the task renews the leases after
//! half of their length; then it gives them back. If its runtime ends before, the thread of the limiter goes on. If a permit is
//! dropped outside of the task's runtime, that thread gives its leases back, because the runtime may stand still or be gone. The
//! leases of a process that dies end by themselves.

mod returns;

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Id;
use tokio::sync::oneshot;

use self::returns::{LimiterId, ReturnUnderWay};
use crate::call::{Awaited, Call, OwnedCall, ReturnedLeases};
use crate::clock::Clock;
use crate::decision::{AdmittedAt, Recount};
use crate::error::BackendError;
use crate::micros;
use crate::observe::log;
use crate::sleepers::Sleepers;
use crate::store::{Decider, LayeredAnswer, Outcome, RemoteStore};
use crate::system::Handle;
use crate::system::home::{Runtimes, Task};

/// The pause before leases are given back again after a failure. It doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The number of attempts to renew a lease while it lasts. Each has to be answered before the next one.
const ATTEMPTS: u64 = 8;

/// The most calls without an answer whose leases are given back at a time.
const MOST_LATE: usize = 1_000;

/// Keeps the leases that calls take of the store below.
pub(super) struct RemoteLeases<S>(Arc<LeasedStore<S>>);

/// The store below, and what it takes to give leases back to it.
struct LeasedStore<S> {
    store: Arc<S>,
    limiter: LimiterId,
    prefix: String,
    clock: Clock,
    sleepers: Arc<Sleepers>,
    runtimes: Arc<Runtimes>,
    /// The number of calls without an answer whose leases are being given back.
    late: AtomicUsize,
}

/// The task of one call.
struct LeaseTask<S: RemoteStore> {
    below: Arc<LeasedStore<S>>,
    call: OwnedCall,
    /// When it was asked, by the clock of the limiter.
    since_us: u64,
    /// Whether it may take leases that nobody holds. If its runtime ends meanwhile, the thread of the limiter gives them back.
    is_open: bool,
}

/// What renews the leases of a permit, and gives them back. If its runtime ends before, the thread of the limiter goes on.
struct LeaseKeeper<S: RemoteStore> {
    below: Arc<LeasedStore<S>>,
    leases: OwnedCall,
    /// Received when the permit is dropped; `None` afterwards.
    dropped: Option<oneshot::Receiver<Option<LeaseReturn<S>>>>,
    renew_us: u64,
    ends_us: u64,
    /// Until this time, Redis may still execute a renewal: one without an answer, or one that ran while the lease was given back.
    open_until_us: u64,
    /// Whether the thread goes on where this ends early: not on itself, and not when nothing is left to do.
    hands_over: bool,
}

/// Leases that a task keeps. Dropping it gives them back.
struct RemoteLease<S: RemoteStore> {
    below: Arc<LeasedStore<S>>,
    leases: OwnedCall,
    /// The runtime of the task.
    runtime: Id,
    dropped: Option<oneshot::Sender<Option<LeaseReturn<S>>>>,
}

/// Leases that are to be given back. If the runtime ends before that, the thread of the limiter gives them back.
struct LeaseReturn<S: RemoteStore> {
    below: Arc<LeasedStore<S>>,
    leases: OwnedCall,
    /// `None` once it is done, or left to the thread of the limiter.
    under_way: Option<ReturnUnderWay>,
}

impl<S: RemoteStore> RemoteLeases<S> {
    pub(super) fn new(
        store: Arc<S>,
        prefix: String,
        clock: Clock,
        sleepers: Arc<Sleepers>,
        runtimes: Arc<Runtimes>,
    ) -> Self {
        let (limiter, late) = (LimiterId::next(), AtomicUsize::new(0));
        Self(Arc::new(LeasedStore { store, limiter, prefix, clock, sleepers, runtimes, late }))
    }
}

impl<S: RemoteStore> Decider for RemoteLeases<S> {
    fn decide_at_once(&self, _: Call<'_>) -> Option<Result<LayeredAnswer, BackendError>> {
        None
    }

    /// If this future is dropped, nothing is sent for the call any more, and what was sent is given back.
    async fn decide(&self, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        if call.leases().is_some()
            && let Ok(runtime) = Handle::try_current()
        {
            return self.0.decide_in_task(call, runtime).await;
        }
        self.0.decide(call).await
    }

    fn note(&self, call: Call<'_>, outcome: Outcome, asked_us: u64) {
        self.0.store.note(call, outcome, asked_us);
    }

    fn forget(&self, call: Call<'_>) {
        self.0.store.forget(call);
    }

    fn recount(
        &self,
        counted: Call<'_>,
        recount: Recount,
        admitted: &AdmittedAt,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send {
        self.0.store.recount(counted, recount, admitted)
    }

    fn reset(&self, call: Call<'_>) -> impl Future<Output = Result<(), BackendError>> + Send {
        self.0.store.reset(call)
    }

    fn ban(&self, call: Call<'_>, duration: Duration) -> impl Future<Output = Result<(), BackendError>> + Send {
        self.0.store.ban(call, duration)
    }
}

impl<S: RemoteStore> LeasedStore<S> {
    /// Decides a call in a task that keeps the leases which it takes.
    async fn decide_in_task(self: &Arc<Self>, call: Call<'_>, runtime: Handle) -> Result<LayeredAnswer, BackendError> {
        let caller = Arc::new(());
        let awaited = Awaited { caller: Some(Arc::downgrade(&caller)), until: call.until() };
        let call = OwnedCall::new(Call { awaited: Some(&awaited), ..call });
        let (answer, answered) = oneshot::channel();
        let task = LeaseTask { below: Arc::clone(self), call, since_us: self.clock.now_us(), is_open: true };
        let mut task: Task = Box::pin(task.run(answer));
        // The first step is made here, so that calls are decided in the order in which they are made.
        if poll_fn(|context| Poll::Ready(task.as_mut().poll(context).is_pending())).await {
            runtime.spawn(task);
        }
        let answered = answered.await.unwrap_or_else(|_| Err(BackendError::away("redis: the runtime was shut down")));
        drop(caller);
        answered
    }

    /// Decides a call. Leases of its subjects that are on their way back are given back before.
    async fn decide(&self, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        let carried = self.limiter.carry(call, &self.prefix);
        if carried.is_empty() {
            return self.store.decide(call).await;
        }
        // The future is boxed because it is rare: no other call carries its state.
        Box::pin(self.decide_behind(call, &carried)).await
    }

    async fn decide_behind(&self, call: Call<'_>, carried: &[ReturnedLeases]) -> Result<LayeredAnswer, BackendError> {
        let store = &self.store;
        let (mut given_back, mut decided) = (pin!(store.give_back(call.policy, carried)), pin!(store.decide(call)));
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
    async fn give_back(&self, leases: Call<'_>, ends_us: u64) {
        let clock = &self.clock;
        let returned = leases.returned_leases(&self.prefix);
        let mut pause = FIRST_PAUSE;
        while let Err(error) = self.store.give_back(leases.policy, &returned).await {
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

    /// How long a call may be executed after it was asked: in a cluster, what was charged is taken back within as long again.
    fn patience_us(&self, call: Call<'_>) -> u64 {
        micros::from_duration(2 * self.store.deadline_of(call.policy))
    }
}

impl<S: RemoteStore> LeaseTask<S> {
    /// Decides the call, and keeps its leases.
    async fn run(mut self, answer: oneshot::Sender<Result<LayeredAnswer, BackendError>>) {
        let below = Arc::clone(&self.below);
        // Boxed, so that the task does not carry it while the call is running.
        match Box::pin(below.decide(self.call.as_call())).await {
            Ok(admitted) if admitted.answer.outcome == Outcome::Admitted => {
                let (Ok(runtime), Some(leases)) = (Handle::try_current(), self.call.as_call().leases()) else { return };
                let (lease, dropped) = RemoteLease::new(&below, leases, runtime.id());
                let keeper = LeaseKeeper::new(&below, leases, self.since_us, dropped);
                self.is_open = false;
                // What a caller that has gone does not receive is dropped.
                drop(answer.send(Ok(LayeredAnswer { lease: Some(Box::new(lease)), ..admitted })));
                drop(self);
                keeper.run().await;
            }
            Ok(denied) => {
                self.is_open = false;
                drop(answer.send(Ok(denied)));
            }
            Err(error) => {
                self.is_open = !error.is_refusal();
                let late = self.is_open.then(|| LateReturn::begin(&below, &self.call, self.since_us)).flatten();
                drop(answer.send(Err(error)));
                if let Some(late) = late {
                    late.run().await;
                }
                self.is_open = false;
            }
        }
    }
}

impl<S: RemoteStore> Drop for LeaseTask<S> {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let (below, call, since_us) = (Arc::clone(&self.below), self.call.clone(), self.since_us);
        self.below.runtimes.spawn_on_thread(async move {
            if let Some(late) = LateReturn::begin(&below, &call, since_us) {
                late.run().await;
            }
        });
    }
}

impl<S: RemoteStore> LeaseKeeper<S> {
    /// Keeps the leases of a call that was asked then.
    fn new(
        below: &Arc<LeasedStore<S>>,
        leases: Call<'_>,
        since_us: u64,
        dropped: oneshot::Receiver<Option<LeaseReturn<S>>>,
    ) -> Self {
        Self {
            below: Arc::clone(below),
            renew_us: since_us.saturating_add(shortest_us(leases) / 2),
            ends_us: below.clock.now_us().saturating_add(longest_us(leases)),
            leases: OwnedCall::new(leases),
            dropped: Some(dropped),
            open_until_us: 0,
            hands_over: true,
        }
    }

    /// Renews the leases until the permit is dropped, and then gives them back.
    async fn run(mut self) {
        if let Some(returned) = self.renew().await {
            returned.run(self.ends_us).await;
        }
        if self.open_until_us > 0 {
            self.below.clock.sleep_until(self.open_until_us).await;
            self.below.give_back(self.leases.as_call(), self.ends_us).await;
        }
        self.hands_over = false;
    }

    /// Renews the leases until the permit is dropped. Returns what gives them back, if that is to be done here.
    async fn renew(&mut self) -> Option<LeaseReturn<S>> {
        let (below, leases) = (&self.below, self.leases.as_call());
        let clock = &below.clock;
        let (shortest_us, longest_us) = (shortest_us(leases), longest_us(leases));
        let dropped = self.dropped.as_mut()?;
        let returned = loop {
            if let Some(returned) = clock.timeout_at(self.renew_us, &mut *dropped).await {
                break returned.ok().flatten();
            }
            let now_us = clock.now_us();
            let again_us = now_us.saturating_add(shortest_us / ATTEMPTS);
            let open_until_us = self.open_until_us;
            // What is not answered may be executed all the same, also if the runtime ends meanwhile.
            self.open_until_us = now_us.saturating_add(below.patience_us(leases));
            self.ends_us = now_us.saturating_add(longest_us);
            let renewed = below.store.renew_leases(leases);
            let renewed = clock.timeout_at(again_us, renewed).await.unwrap_or_else(|| Err(silent()));
            self.renew_us = if renewed.is_ok() { now_us.saturating_add(shortest_us / 2) } else { again_us };
            self.ends_us = clock.now_us().saturating_add(longest_us);
            match renewed {
                // An earlier renewal without an answer may still arrive.
                Ok(()) => self.open_until_us = open_until_us.max(now_us),
                Err(error) => {
                    self.open_until_us = clock.now_us().saturating_add(below.patience_us(leases));
                    log::lease_not_renewed(leases.policy.name(), &error);
                }
            }
        };
        self.dropped = None;
        returned
    }
}

impl<S: RemoteStore> Drop for LeaseKeeper<S> {
    fn drop(&mut self) {
        let is_needed = self.dropped.is_some() || self.open_until_us > 0;
        if !mem::take(&mut self.hands_over) || !is_needed {
            return;
        }
        let (below, leases) = (Arc::clone(&self.below), self.leases.clone());
        let rest = Self { below, leases, dropped: self.dropped.take(), ..*self };
        self.below.runtimes.spawn_on_thread(rest.run());
    }
}

impl<S: RemoteStore> RemoteLease<S> {
    /// The leases that a call has taken, and what tells the task on that runtime that they were dropped.
    fn new(
        below: &Arc<LeasedStore<S>>,
        leases: Call<'_>,
        runtime: Id,
    ) -> (Self, oneshot::Receiver<Option<LeaseReturn<S>>>) {
        let (sender, dropped) = oneshot::channel();
        leases.policy.observed().lease_taken();
        (Self { below: Arc::clone(below), leases: OwnedCall::new(leases), runtime, dropped: Some(sender) }, dropped)
    }
}

impl<S: RemoteStore> Drop for RemoteLease<S> {
    fn drop(&mut self) {
        self.leases.policy.observed().lease_given_back();
        let Some(dropped) = self.dropped.take() else { return };
        let returned = LeaseReturn::new(&self.below, &self.leases);
        let is_at_home = Handle::try_current().is_ok_and(|runtime| runtime.id() == self.runtime);
        if is_at_home {
            // If the task is gone, the return is dropped here.
            drop(dropped.send(Some(returned)));
        } else {
            drop(dropped.send(None));
            drop(returned);
        }
    }
}

impl<S: RemoteStore> LeaseReturn<S> {
    fn new(below: &Arc<LeasedStore<S>>, leases: &OwnedCall) -> Self {
        let under_way = ReturnUnderWay::begin(leases.as_call(), &below.prefix);
        Self { below: Arc::clone(below), leases: leases.clone(), under_way }
    }

    async fn run(mut self, ends_us: u64) {
        self.below.give_back(self.leases.as_call(), ends_us).await;
        self.under_way = None;
    }

    async fn run_on_thread(below: Arc<LeasedStore<S>>, leases: OwnedCall, under_way: ReturnUnderWay) {
        let ends_us = below.clock.now_us().saturating_add(longest_us(leases.as_call()));
        below.give_back(leases.as_call(), ends_us).await;
        drop(under_way);
    }
}

impl<S: RemoteStore> Drop for LeaseReturn<S> {
    fn drop(&mut self) {
        let Some(under_way) = self.under_way.take() else { return };
        let returned = Self::run_on_thread(Arc::clone(&self.below), self.leases.clone(), under_way);
        self.below.runtimes.spawn_on_thread(returned);
    }
}

/// The leases of a call without an answer. They are given back when Redis can no longer execute the call. If there is no place,
/// they end by themselves.
struct LateReturn<'a, S: RemoteStore> {
    leases: Call<'a>,
    since_us: u64,
    below: &'a LeasedStore<S>,
    _place: LatePlace<'a>,
    _under_way: Option<ReturnUnderWay>,
}

impl<'a, S: RemoteStore> LateReturn<'a, S> {
    /// Returns `None` if there is no place, or no lease.
    fn begin(below: &'a LeasedStore<S>, call: &'a OwnedCall, since_us: u64) -> Option<Self> {
        let leases = call.as_call().leases()?;
        let place = LatePlace::take(&below.late)?;
        Some(Self { leases, since_us, below, _place: place, _under_way: ReturnUnderWay::begin(leases, &below.prefix) })
    }

    async fn run(self) {
        let over_us = self.since_us.saturating_add(self.below.patience_us(self.leases));
        self.below.clock.sleep_until(over_us).await;
        self.below.give_back(self.leases, over_us.saturating_add(longest_us(self.leases))).await;
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

fn silent() -> BackendError {
    BackendError::away("redis: no answer before the lease is to be renewed again")
}

/// How long the longest of the leases lasts.
fn longest_us(leases: Call<'_>) -> u64 {
    leases.groups().iter().filter_map(|group| group.lease_us).max().unwrap_or_default()
}

/// How long the shortest of the leases lasts.
fn shortest_us(leases: Call<'_>) -> u64 {
    leases.groups().iter().filter_map(|group| group.lease_us).min().unwrap_or_default()
}

#[cfg(test)]
mod tests;
