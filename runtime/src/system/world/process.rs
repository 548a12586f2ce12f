//! A process of the fleet, and the code that runs in it, with random numbers and statics of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::hash::BuildHasher;
use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use foldhash::quality::FixedState;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

#[cfg(feature = "redis")]
pub(crate) use self::redis::*;

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Process>>> = const { RefCell::new(None) };
}

/// A wait until a time.
pub type Sleeping = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An attempt to connect.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

/// A connection that carries bytes.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A process of the fleet, as seen by its limiters.
///
/// While it is paused, [`poll_running`](Self::poll_running) is pending for its tasks. To kill it, first cut its
/// streams, then abort all tasks that [`spawned`](Self::spawned) has announced, and each one that it announces later.
/// Tokio drops an aborted task without polling it again. The task is still in the process while it is dropped.
pub trait Process: Send + Sync {
    /// The number of the process. No later process of this program may have it, or the two would share statics.
    fn id(&self) -> u64;

    /// The time on its clock, which never goes back.
    fn now(&self) -> Instant;

    /// The time since 1970 that the process believes to be right.
    fn unix(&self) -> Duration;

    /// Returns a future that ends when its clock reaches this time.
    fn sleep_until(&self, until: Instant) -> Sleeping;

    /// Returns the next random number.
    fn random(&self) -> u64;

    /// Connects to a server.
    fn connect(&self, host: &str, port: u16) -> Connecting;

    /// Is asked before each step of each task. While the process is paused, it is pending, and wakes the task
    /// afterwards.
    fn poll_running(&self, context: &mut Context<'_>) -> Poll<()>;

    /// Announces a task that the limiters have begun.
    fn spawned(&self, task: AbortHandle);
}

/// Runs a future in a process. Everything that it does and begins belongs to this process.
pub fn in_process<F: Future>(process: Arc<dyn Process>, future: F) -> InProcess<F> {
    InProcess { process: Some(process), future: Some(Box::pin(future)) }
}

/// A future in a process. See [`in_process`].
#[must_use = "a future does nothing unless it is polled"]
pub struct InProcess<F> {
    process: Option<Arc<dyn Process>>,
    /// `None` only while it is dropped.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> InProcess<F> {
    /// Runs a future in the process of the caller.
    pub(super) fn here(future: F) -> Self {
        Self { process: current(), future: Some(Box::pin(future)) }
    }
}

impl<F: Future> Future for InProcess<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { process, future: Some(future) } = &mut *self else { return Poll::Pending };
        if let Some(process) = process {
            ready!(process.poll_running(context));
        }
        let _entered = Entered::new(process.clone());
        future.as_mut().poll(context)
    }
}

impl<F> Drop for InProcess<F> {
    fn drop(&mut self) {
        let _entered = Entered::new(self.process.take());
        drop(self.future.take());
    }
}

/// Returns the process in which this code runs; `None` outside of all processes.
pub(super) fn current() -> Option<Arc<dyn Process>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Makes a process the current one until this is dropped.
struct Entered {
    before: Option<Arc<dyn Process>>,
}

impl Entered {
    fn new(process: Option<Arc<dyn Process>>) -> Self {
        Self { before: replace_current(process) }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        drop(replace_current(self.before.take()));
    }
}

fn replace_current(process: Option<Arc<dyn Process>>) -> Option<Arc<dyn Process>> {
    CURRENT.try_with(|current| current.replace(process)).ok().flatten()
}

/// A hasher for tables whose order must not be predictable.
#[derive(Clone, Debug)]
pub(crate) struct RandomState(FixedState);

impl Default for RandomState {
    fn default() -> Self {
        Self(FixedState::with_seed(random()))
    }
}

impl BuildHasher for RandomState {
    type Hasher = <FixedState as BuildHasher>::Hasher;

    fn build_hasher(&self) -> Self::Hasher {
        self.0.build_hasher()
    }
}

fn random() -> u64 {
    current().map_or_else(|| foldhash::quality::RandomState::default().hash_one(()), |process| process.random())
}

/// Items that only the store in Redis uses.
#[cfg(feature = "redis")]
mod redis {
    use std::ops::RangeBounds;

    use fastrand::Rng;

    use super::random;

    pub(crate) fn random_fraction() -> f64 {
        Rng::with_seed(random()).f64()
    }

    pub(crate) fn random_number(range: impl RangeBounds<u64>) -> u64 {
        Rng::with_seed(random()).u64(range)
    }

    pub(crate) fn shuffle<T>(values: &mut [T]) {
        Rng::with_seed(random()).shuffle(values);
    }
}

/// The value of a static in each process. Values are few and small, and are never freed.
pub(crate) struct PerProcess<T: 'static> {
    make: fn() -> T,
    values: Mutex<BTreeMap<Option<u64>, &'static T>>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new(make: fn() -> T) -> Self {
        Self { make, values: Mutex::new(BTreeMap::new()) }
    }
}

impl<T> Deref for PerProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let process = current().map(|process| process.id());
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.entry(process).or_insert_with(|| Box::leak(Box::new((self.make)())))
    }
}

/// Declares a static of which each process has its own.
macro_rules! per_process {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $value:expr;) => {
        $(#[$attribute])*
        $visibility static $name: $crate::system::PerProcess<$type> = $crate::system::PerProcess::new(|| $value);
    };
}
pub(crate) use per_process;
