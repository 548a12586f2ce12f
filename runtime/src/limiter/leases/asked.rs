//! Calls that take leases in Redis, each decided by a task of its own.
//!
//! So the answer to a call is heard although its caller has gone, and the leases that nobody holds are given back at once.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::LeasedCall;
use super::kept::{HeldLeases, lengths_us, patience_us};
use crate::decision::Lease;
use crate::error::BackendError;
use crate::limiter::core::Core;
use crate::store::{Answer, Outcome, Request};

/// How many calls at most are given back at a time whose answers did not come.
const MOST_LATE: usize = 1_000;

/// The answer to a call, and the leases that it has taken. Dropping these gives them back.
type Answered = Result<(Answer, Option<Lease>), BackendError>;

/// A call that is being decided. If it is dropped, nothing is sent for it any more, and what was sent is given back.
pub(in crate::limiter) struct Asking {
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
    runtime: Handle,
    answered: oneshot::Receiver<Answered>,
    _caller: Arc<()>,
}

/// The task that asks.
struct Asked {
    core: Arc<Core>,
    call: Arc<LeasedCall>,
    /// Leads nowhere once the caller has gone.
    caller: Weak<()>,
    /// When it was asked, by the clock of the limiter.
    since_us: u64,
}

impl Core {
    /// Returns how a call is decided, if it takes leases in Redis.
    pub(in crate::limiter) fn ask_for_leases(self: &Arc<Self>, request: Request<'_>) -> Option<Asking> {
        self.redis()?;
        let call = Arc::new(LeasedCall::of(request)?);
        let runtime = Handle::try_current().ok()?;
        let (answer, answered) = oneshot::channel();
        let caller = Arc::new(());
        let (core, since_us) = (Arc::clone(self), self.clock.now_us());
        let task = Box::pin(Asked { core, call, caller: Arc::downgrade(&caller), since_us }.decide(answer));
        Some(Asking { task, runtime, answered, _caller: caller })
    }
}

impl Asking {
    /// Begins to decide the call, and awaits the answer.
    pub(in crate::limiter) async fn answer(mut self) -> Answered {
        // The first step is made here, so that calls are decided in the order in which they are made.
        if poll_fn(|context| Poll::Ready(self.task.as_mut().poll(context).is_pending())).await {
            self.runtime.spawn(self.task);
        }
        self.answered.await.unwrap_or_else(|_| Err(BackendError::away("redis: the runtime was shut down")))
    }
}

impl Asked {
    /// Decides the call, and keeps its leases.
    async fn decide(self, answer: oneshot::Sender<Answered>) {
        let Some(redis) = self.core.redis() else { return };
        let request = Request { caller: Some(&self.caller), ..self.call.whole() };
        // Boxed, so that the task does not carry it while the call is running.
        match Box::pin(redis.decide(request)).await {
            Ok(admitted) if admitted.outcome == Outcome::Admitted => {
                let (leases, dropped) = HeldLeases::new(&self.call);
                // What a caller that has gone does not receive is dropped.
                drop(answer.send(Ok((admitted, Some(Box::new(leases))))));
                self.core.keep(&self.call, self.since_us, dropped).await;
            }
            Ok(denied) => drop(answer.send(Ok((denied, None)))),
            Err(error) => {
                let may_be_executed = !error.is_refusal();
                drop(answer.send(Err(error)));
                // Without a place, the leases end by themselves.
                if may_be_executed && let Some(_place) = Late::of(&self.core) {
                    self.give_back().await;
                }
            }
        }
    }

    /// Gives the leases of a call back whose answer did not come, once it is not executed any more.
    async fn give_back(&self) {
        if let (Some(redis), Some(request)) = (self.core.redis(), self.call.request())
            && let Some((_, longest_us)) = lengths_us(request)
        {
            let over_us = self.since_us.saturating_add(patience_us(redis, &self.call));
            self.core.clock.sleep_until(over_us).await;
            self.core.give_back(request, over_us.saturating_add(longest_us)).await;
        }
    }
}

/// One of the calls at a time whose answers did not come. Its place is free again also if the runtime ends before.
struct Late<'a>(&'a Core);

impl<'a> Late<'a> {
    /// Takes a place, if there is one.
    fn of(core: &'a Core) -> Option<Self> {
        let place = Self(core);
        (core.late.fetch_add(1, Ordering::Relaxed) < MOST_LATE).then_some(place)
    }
}

impl Drop for Late<'_> {
    fn drop(&mut self) {
        self.0.late.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, feature = "redis"))]
mod tests {
    use std::time::Duration;

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
        let call = LeasedCall::of(Request::new(&policy, &[Subject::of("s").key()], options)).unwrap();
        let core = Arc::clone(&limiter.core);
        let asked = Asked { call: Arc::new(call), caller: Weak::new(), since_us: core.clock.now_us(), core };
        let late = || limiter.core.late.load(Ordering::Relaxed);
        runtime.block_on(async {
            tokio::spawn(async move {
                let _place = Late::of(&asked.core);
                asked.give_back().await;
            });
            tokio::task::yield_now().await;
        });
        assert_eq!(late(), 1);
        drop(runtime);
        assert_eq!(late(), 0);
    }
}
