//! The leases of concurrent calls: held by the permit of a call, and given back when it is dropped.
//!
//! A call that takes leases in Redis has a task of its own. The task decides the call, so that its answer arrives even if the
//! caller has gone: leases that nobody holds are given back at once. While the permit exists, the task renews the leases after
//! half of their length; then it gives them back. If its runtime ends before, the thread of the limiter goes on. If a permit is
//! dropped outside of the task's runtime, that thread gives its leases back, because the runtime may stand still or be gone. The
//! leases of a process that dies end by themselves.

mod late_return;

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Id;
use tokio::sync::oneshot;

use self::late_return::{LateReturn, longest_us, patience_us};
use super::core::Core;
use super::lease_returns::ReturnUnderWay;
use crate::call::{Call, OwnedCall, ReturnedLeases};
use crate::decision::{DecidedBy, Lease};
use crate::error::BackendError;
use crate::micros;
use crate::observe::log;
use crate::store::{Answer, Outcome};
use crate::system::Handle;
use crate::system::home::Task;

/// How long after a failure leases are given back again: as long at first, and then longer.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The number of attempts to renew a lease while it lasts. Each has to be answered before the next one.
const ATTEMPTS: u64 = 8;

/// The answer to a call, and the leases that it has taken. Dropping these gives them back.
pub(super) type LeasedAnswer = Result<(Answer, Option<Lease>), BackendError>;

/// The leases of a call that are in this process. Dropping it gives them back.
struct LeasesInMemory {
    core: Arc<Core>,
    /// The part of the call that takes them.
    call: OwnedCall,
    decided_by: DecidedBy,
}

/// The task of one call.
struct LeaseTask {
    core: Arc<Core>,
    call: OwnedCall,
    /// When it was asked, by the clock of the limiter.
    since_us: u64,
    /// Whether it may take leases that nobody holds. If its runtime ends meanwhile, the thread of the limiter gives them back.
    is_open: bool,
}

/// What renews the leases of a permit, and gives them back. If its runtime ends before, the thread of the limiter goes on.
struct LeaseKeeper {
    core: Arc<Core>,
    leases: OwnedCall,
    /// Received when the permit is dropped; `None` afterwards.
    dropped: Option<oneshot::Receiver<Option<LeaseReturn>>>,
    renew_us: u64,
    ends_us: u64,
    /// Until then, a renewal may still be executed: one that was not answered, or one that ran while the lease was given back.
    open_until_us: u64,
    /// Whether the thread goes on where this ends early: not on itself, and not when nothing is left to do.
    hands_over: bool,
}

/// Leases that a task keeps. Dropping it gives them back.
struct LeasesInRedis {
    core: Arc<Core>,
    leases: OwnedCall,
    /// The runtime of the task.
    home: Id,
    dropped: Option<oneshot::Sender<Option<LeaseReturn>>>,
}

/// Leases that are to be given back. If the runtime ends before that, the thread of the limiter gives them back.
struct LeaseReturn {
    core: Arc<Core>,
    leases: OwnedCall,
    /// `None` once it is done, or left to the thread of the limiter.
    under_way: Option<ReturnUnderWay>,
}

impl Core {
    /// Decides a call, and keeps the leases that it takes; `None` if it takes awaiting.
    pub(super) fn ask_at_once(self: &Arc<Self>, call: Call<'_>) -> Option<LeasedAnswer> {
        let answer = self.store.decide_at_once(call)?;
        Some(answer.map(|answer| self.leased_at_once(call, answer, DecidedBy::Backend)))
    }

    /// Returns an answer that was given in this process, with the leases that the call has taken.
    pub(super) fn leased_at_once(
        self: &Arc<Self>,
        call: Call<'_>,
        answer: Answer,
        decided_by: DecidedBy,
    ) -> (Answer, Option<Lease>) {
        let is_admitted = answer.outcome == Outcome::Admitted;
        let lease = is_admitted.then(|| self.lease_in_memory(call, decided_by)).flatten();
        (answer, lease)
    }

    fn lease_in_memory(self: &Arc<Self>, call: Call<'_>, decided_by: DecidedBy) -> Option<Lease> {
        let call = OwnedCall::new(call.leases()?);
        call.policy.observed().lease_taken();
        Some(Box::new(LeasesInMemory { core: Arc::clone(self), call, decided_by }))
    }

    /// Wakes the callers of this process that wait for one of these leases.
    fn notify_waiters(&self, leases: Call<'_>) {
        self.sleepers.wake_one(leases.keys(&self.prefix));
    }

    /// Decides a call, and keeps the leases that it takes.
    ///
    /// If this future is dropped, nothing is sent for the call any more, and what was sent is given back.
    pub(super) async fn ask(self: &Arc<Self>, call: Call<'_>) -> LeasedAnswer {
        if let Some(answered) = self.ask_at_once(call) {
            return answered;
        }
        let (Some(_), Ok(runtime)) = (call.leases(), Handle::try_current()) else {
            return Ok((self.decide_behind_returns(call).await?, None));
        };
        let caller = Arc::new(());
        let call = OwnedCall::new(Call { caller: Some(&Arc::downgrade(&caller)), ..call });
        let (answer, answered) = oneshot::channel();
        let task = LeaseTask { core: Arc::clone(self), call, since_us: self.clock.now_us(), is_open: true };
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
    async fn decide_behind_returns(&self, call: Call<'_>) -> Result<Answer, BackendError> {
        let carried = self.id.carry(call, &self.prefix);
        if carried.is_empty() {
            return self.store.decide(call).await;
        }
        // The future is boxed because it is rare: no other call carries its state.
        Box::pin(self.decide_behind(call, &carried)).await
    }

    async fn decide_behind(&self, call: Call<'_>, carried: &[ReturnedLeases]) -> Result<Answer, BackendError> {
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
            self.id.lose(carried);
        }
        answer
    }

    /// Gives leases back, and tries again until they end by themselves.
    async fn give_back_leases(&self, leases: Call<'_>, ends_us: u64) {
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
        self.notify_waiters(leases);
    }
}

impl Drop for LeasesInMemory {
    fn drop(&mut self) {
        let leases = self.call.as_call();
        match self.decided_by {
            DecidedBy::Standby => self.core.outage.give_back(leases),
            DecidedBy::Backend | DecidedBy::Nobody => self.core.store.give_back_at_once(leases),
        }
        self.call.policy.observed().lease_given_back();
        self.core.notify_waiters(leases);
    }
}

impl LeaseTask {
    /// Decides the call, and keeps its leases.
    async fn run(mut self, answer: oneshot::Sender<LeasedAnswer>) {
        let core = Arc::clone(&self.core);
        // Boxed, so that the task does not carry it while the call is running.
        match Box::pin(core.decide_behind_returns(self.call.as_call())).await {
            Ok(admitted) if admitted.outcome == Outcome::Admitted => {
                let (Ok(runtime), Some(leases)) = (Handle::try_current(), self.call.as_call().leases()) else { return };
                let (lease, dropped) = LeasesInRedis::new(&core, leases, runtime.id());
                let keeper = LeaseKeeper::new(&core, leases, self.since_us, dropped);
                self.is_open = false;
                // What a caller that has gone does not receive is dropped.
                drop(answer.send(Ok((admitted, Some(Box::new(lease))))));
                drop(self);
                keeper.run().await;
            }
            Ok(denied) => {
                self.is_open = false;
                drop(answer.send(Ok((denied, None))));
            }
            Err(error) => {
                self.is_open = !error.is_refusal();
                let late = self.is_open.then(|| LateReturn::begin(&core, &self.call, self.since_us)).flatten();
                drop(answer.send(Err(error)));
                if let Some(late) = late {
                    late.run().await;
                }
                self.is_open = false;
            }
        }
    }
}

impl Drop for LeaseTask {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let (core, call, since_us) = (Arc::clone(&self.core), self.call.clone(), self.since_us);
        self.core.runtimes.spawn_on_thread(async move {
            if let Some(late) = LateReturn::begin(&core, &call, since_us) {
                late.run().await;
            }
        });
    }
}

impl LeaseKeeper {
    /// Keeps the leases of a call that was asked then.
    fn new(core: &Arc<Core>, leases: Call<'_>, since_us: u64, dropped: oneshot::Receiver<Option<LeaseReturn>>) -> Self {
        Self {
            core: Arc::clone(core),
            renew_us: since_us.saturating_add(shortest_us(leases) / 2),
            ends_us: core.clock.now_us().saturating_add(longest_us(leases)),
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
            self.core.clock.sleep_until(self.open_until_us).await;
            self.core.give_back_leases(self.leases.as_call(), self.ends_us).await;
        }
        self.hands_over = false;
    }

    /// Renews the leases until the permit is dropped. Returns what gives them back, if that is to be done here.
    async fn renew(&mut self) -> Option<LeaseReturn> {
        let (core, leases) = (&self.core, self.leases.as_call());
        let clock = &core.clock;
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
            self.open_until_us = now_us.saturating_add(patience_us(core, leases));
            self.ends_us = now_us.saturating_add(longest_us);
            let renewed = core.store.renew_leases(leases);
            let renewed = clock.timeout_at(again_us, renewed).await.unwrap_or_else(|| Err(silent()));
            self.renew_us = if renewed.is_ok() { now_us.saturating_add(shortest_us / 2) } else { again_us };
            self.ends_us = clock.now_us().saturating_add(longest_us);
            match renewed {
                // An earlier renewal without an answer may still arrive.
                Ok(()) => self.open_until_us = open_until_us.max(now_us),
                Err(error) => {
                    self.open_until_us = clock.now_us().saturating_add(patience_us(core, leases));
                    log::lease_not_renewed(leases.policy.name(), &error);
                }
            }
        };
        self.dropped = None;
        returned
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        let is_needed = self.dropped.is_some() || self.open_until_us > 0;
        if !mem::take(&mut self.hands_over) || !is_needed {
            return;
        }
        let (core, leases) = (Arc::clone(&self.core), self.leases.clone());
        let rest = Self { core, leases, dropped: self.dropped.take(), ..*self };
        self.core.runtimes.spawn_on_thread(rest.run());
    }
}

impl LeasesInRedis {
    /// The leases that a call has taken, and what tells the task on that runtime that they were dropped.
    fn new(core: &Arc<Core>, leases: Call<'_>, home: Id) -> (Self, oneshot::Receiver<Option<LeaseReturn>>) {
        let (sender, dropped) = oneshot::channel();
        leases.policy.observed().lease_taken();
        (Self { core: Arc::clone(core), leases: OwnedCall::new(leases), home, dropped: Some(sender) }, dropped)
    }
}

impl Drop for LeasesInRedis {
    fn drop(&mut self) {
        self.leases.policy.observed().lease_given_back();
        let Some(dropped) = self.dropped.take() else { return };
        let returned = LeaseReturn::new(&self.core, &self.leases);
        let is_at_home = Handle::try_current().is_ok_and(|runtime| runtime.id() == self.home);
        if is_at_home {
            // If the task is gone, the return is dropped here.
            drop(dropped.send(Some(returned)));
        } else {
            drop(dropped.send(None));
            drop(returned);
        }
    }
}

impl LeaseReturn {
    fn new(core: &Arc<Core>, leases: &OwnedCall) -> Self {
        let under_way = ReturnUnderWay::begin(leases.as_call(), &core.prefix);
        Self { core: Arc::clone(core), leases: leases.clone(), under_way }
    }

    async fn run(mut self, ends_us: u64) {
        self.core.give_back_leases(self.leases.as_call(), ends_us).await;
        self.under_way = None;
    }

    async fn run_on_thread(core: Arc<Core>, leases: OwnedCall, under_way: ReturnUnderWay) {
        let ends_us = core.clock.now_us().saturating_add(longest_us(leases.as_call()));
        core.give_back_leases(leases.as_call(), ends_us).await;
        drop(under_way);
    }
}

impl Drop for LeaseReturn {
    fn drop(&mut self) {
        let Some(under_way) = self.under_way.take() else { return };
        let returned = Self::run_on_thread(Arc::clone(&self.core), self.leases.clone(), under_way);
        self.core.runtimes.spawn_on_thread(returned);
    }
}

fn silent() -> BackendError {
    BackendError::away("redis: no answer before the lease is to be renewed again")
}

/// How long the shortest of the leases lasts.
fn shortest_us(leases: Call<'_>) -> u64 {
    leases.groups().iter().filter_map(|group| group.lease_us).min().unwrap_or_default()
}
