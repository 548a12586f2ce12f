//! A process of the fleet, and the code that runs in it.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Process>>> = const { RefCell::new(None) };
}

/// The wait for a time.
pub type Sleeping = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An attempt to connect.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

/// A connection that carries bytes.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A process of the fleet, as its limiters see it.
///
/// To pause it, [`poll_running`](Self::poll_running) is pending for its tasks. To kill it, its streams are cut first; then all
/// tasks that it was told of are aborted, as is each that [`spawned`](Self::spawned) tells it of from then on. Tokio drops an
/// aborted task without polling it again, and the task is in the process while it is dropped.
pub trait Process: Send + Sync {
    /// Its number. No process that begins later in this program has the same, or it would have its statics.
    fn id(&self) -> u64;

    /// What its clock shows, which never goes back.
    fn now(&self) -> Instant;

    /// The time since 1970 that it takes for the right one.
    fn unix(&self) -> Duration;

    /// Returns a future that ends when its clock shows that time.
    fn sleep_until(&self, until: Instant) -> Sleeping;

    /// Returns the next random number.
    fn random(&self) -> u64;

    /// Connects to a server.
    fn connect(&self, host: &str, port: u16) -> Connecting;

    /// Is asked before each step of each task. Pending while the process is paused: it wakes the task when it goes on.
    fn poll_running(&self, context: &mut Context<'_>) -> Poll<()>;

    /// Takes note of each task that the limiters begin.
    fn spawned(&self, task: AbortHandle);
}

/// Runs a future in a process: whatever it does and begins belongs to that process.
pub fn in_process<F: Future>(process: Arc<dyn Process>, future: F) -> InProcess<F> {
    InProcess { process: Some(process), future: Some(Box::pin(future)) }
}

/// A future in a process. See [`in_process`].
#[must_use = "a future does nothing unless it is polled"]
pub struct InProcess<F> {
    process: Option<Arc<dyn Process>>,
    /// Gone only while it is dropped.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> InProcess<F> {
    /// Runs a future where the caller runs.
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

/// Returns the process in which this code runs.
pub(super) fn current() -> Option<Arc<dyn Process>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// The time that a step of a process takes.
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
