//! The leases of concurrent calls: held by the permit of a call, and given back when it is dropped.
//!
//! A call that takes leases in Redis has a task of its own. The task decides the call, so that its answer arrives even if the
//! caller has gone: leases that nobody holds are given back at once. While the permit exists, the task renews the leases after
//! half of their length; then it gives them back. If its runtime ends before, the thread of the limiter goes on. If a permit is
//! dropped outside of the task's runtime, that thread gives its leases back, because the runtime may stand still or be gone. The
//! leases of a process that dies end by themselves.
//!
//! | type | what it holds, from when until when |
//! | --- | --- |
//! | [`LeaseTask`] | the call, until it is answered |
//! | [`RemoteLease`] | the leases, in the permit of the call; its drop begins the return |
//! | [`LeaseKeeper`] | the leases, in the task, beside the permit: renews them, and gives them back after it |
//! | [`LeaseReturn`] | leases of a dropped permit, until they are given back |
//! | [`LateReturn`] | leases that a call without an answer may have taken, until they are given back |
//! | [`ReturnUnderWay`](returns::ReturnUnderWay) | the place of any of these returns in the list that later calls carry along |
//! | [`LeasedStore`] | what all of them share |

mod keeper;
mod leased_store;
mod returns;

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::oneshot;

use self::keeper::{LeaseKeeper, RemoteLease};
use self::leased_store::{LateReturn, LeasedStore};
use self::returns::LimiterId;
use crate::call::{Awaited, Call, OwnedCall};
use crate::clock::Clock;
use crate::decision::{AdmittedAt, Recount};
use crate::error::BackendError;
use crate::sleepers::Sleepers;
use crate::store::{Decider, LayeredAnswer, Outcome, RemoteStore};
use crate::system::Handle;
use crate::system::home::{Runtimes, Task};
use crate::system::under_way::TaskKind;

/// Keeps the leases that calls take of the store below.
pub(super) struct RemoteLeases<S>(Arc<LeasedStore<S>>);

/// The task of one call.
struct LeaseTask<S: RemoteStore> {
    shared: Arc<LeasedStore<S>>,
    call: OwnedCall,
    /// When it was asked, by the clock of the limiter.
    since_us: u64,
    /// Whether it may take leases that nobody holds. If its runtime ends meanwhile, the thread of the limiter gives them back.
    is_open: bool,
}

impl<S: RemoteStore> RemoteLeases<S> {
    pub(super) fn new(
        below: Arc<S>,
        prefix: String,
        clock: Clock,
        sleepers: Arc<Sleepers>,
        runtimes: Arc<Runtimes>,
    ) -> Self {
        let (limiter, late) = (LimiterId::next(), AtomicUsize::new(0));
        Self(Arc::new(LeasedStore { below, limiter, prefix, clock, sleepers, runtimes, late }))
    }

    /// Decides a call in a task that keeps the leases which it takes.
    async fn decide_in_task(&self, call: Call<'_>, runtime: Handle) -> Result<LayeredAnswer, BackendError> {
        let caller = Arc::new(());
        let awaited = Awaited { caller: Some(Arc::downgrade(&caller)), until: call.until() };
        let call = OwnedCall::new(Call { awaited: Some(&awaited), ..call });
        let (answer, answered) = oneshot::channel();
        let task = LeaseTask { shared: Arc::clone(&self.0), call, since_us: self.0.clock.now_us(), is_open: true };
        let mut task: Task = Box::pin(self.0.runtimes.counted(TaskKind::Lease, task.run(answer)));
        // The first step is made here, so that calls are decided in the order in which they are made.
        if poll_fn(|context| Poll::Ready(task.as_mut().poll(context).is_pending())).await {
            runtime.spawn(task);
        }
        let answered = answered.await.unwrap_or_else(|_| Err(BackendError::away("redis: the runtime was shut down")));
        drop(caller);
        answered
    }
}

impl<S: RemoteStore> Decider for RemoteLeases<S> {
    /// If this future is dropped, nothing is sent for the call any more, and what was sent is given back.
    async fn decide(&self, call: Call<'_>) -> Result<LayeredAnswer, BackendError> {
        if call.leases().is_some()
            && let Ok(runtime) = Handle::try_current()
        {
            return self.decide_in_task(call, runtime).await;
        }
        self.0.decide(call).await
    }

    fn note(&self, call: Call<'_>, outcome: Outcome, asked_us: u64) {
        self.0.below.note(call, outcome, asked_us);
    }

    fn forget(&self, call: Call<'_>) {
        self.0.below.forget(call);
    }

    fn recount(
        &self,
        counted: Call<'_>,
        recount: &Recount,
        admitted: &AdmittedAt,
    ) -> impl Future<Output = Result<bool, BackendError>> + Send {
        self.0.below.recount(counted, recount, admitted)
    }

    fn reset(&self, call: Call<'_>) -> impl Future<Output = Result<(), BackendError>> + Send {
        self.0.below.reset(call)
    }

    fn ban(&self, call: Call<'_>, duration: Duration) -> impl Future<Output = Result<(), BackendError>> + Send {
        self.0.below.ban(call, duration)
    }
}

impl<S: RemoteStore> LeaseTask<S> {
    /// Decides the call, and keeps its leases.
    async fn run(mut self, answer: oneshot::Sender<Result<LayeredAnswer, BackendError>>) {
        let shared = Arc::clone(&self.shared);
        // Boxed, so that the task does not carry it while the call is running.
        match Box::pin(shared.decide(self.call.as_call())).await {
            Ok(admitted) if admitted.answer.outcome == Outcome::Admitted => {
                let (Ok(runtime), Some(leases)) = (Handle::try_current(), self.call.as_call().leases()) else { return };
                let (lease, dropped) = RemoteLease::new(&shared, leases, runtime.id());
                let keeper = LeaseKeeper::new(&shared, leases, self.since_us, dropped);
                self.is_open = false;
                // If the caller has gone, the lease is dropped here, and so given back.
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
                let late = self.is_open.then(|| LateReturn::begin(&shared, &self.call, self.since_us)).flatten();
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
        let (shared, call, since_us) = (Arc::clone(&self.shared), self.call.clone(), self.since_us);
        self.shared.runtimes.spawn_on_thread(TaskKind::Lease, async move {
            if let Some(late) = LateReturn::begin(&shared, &call, since_us) {
                late.run().await;
            }
        });
    }
}

#[cfg(test)]
mod tests;
