//! The runtimes that drive the background work of a limiter.
//!
//! A task ends with its runtime, and stands still with it. So a limiter has two runtimes: its home, which is the first
//! runtime that asks, and the runtime of a thread of its own. Only calls in the home use what the home drives. Plain
//! functions, and calls in other runtimes like those of tests, use what the thread drives, which lasts as long as the
//! limiter.

use std::fmt;
use std::io;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use once_cell::sync::OnceCell;
use tokio::runtime::Id;
use tokio::sync::watch;
#[cfg(feature = "redis")]
use tokio::task::JoinHandle;

use super::under_way::{Background, TaskKind, UnderWay};
use super::{Handle, OwnRuntime, is_own_thread, sleep_apart};
use crate::error::BackendError;

/// A task in the background. All tasks have this one type, because tokio has a hundred functions compiled for each
/// type.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Default)]
pub(crate) struct Runtimes {
    home: OnceCell<Id>,
    /// Started when it is needed.
    thread: OnceCell<OwnRuntime>,
    pub(crate) background: Arc<Background>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Home,
    Thread,
}

impl Runtimes {
    /// Returns the runtime that drives the work that begins here. The first runtime that asks becomes the home.
    #[inline]
    pub(crate) fn side(&self) -> Side {
        match Handle::try_current() {
            Ok(current) if !is_own_thread() && *self.home.get_or_init(|| current.id()) == current.id() => Side::Home,
            _ => Side::Thread,
        }
    }

    /// Returns the runtime of the thread, which starts with the first call.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub(crate) fn thread(&self) -> io::Result<&OwnRuntime> {
        self.thread.get_or_try_init(OwnRuntime::start)
    }

    /// Checks that the thread is in this process, if it has been started.
    ///
    /// # Errors
    ///
    /// This process is a fork of the process with the thread.
    pub(crate) fn check_process(&self) -> Result<(), BackendError> {
        if self.thread.get().is_none_or(OwnRuntime::is_here) {
            return Ok(());
        }
        Err(BackendError::misuse(
            "this process was forked off after the limiter had begun to decide calls, and its thread is not in a fork; build \
             the limiter after the fork, in each process",
        ))
    }

    /// Lets no pause of the background go on, and waits until nothing is under way, at most for that time. `send_rest` begins
    /// what else is to be done before the end: at once, as something may outlast the time, and again for what has come since,
    /// unless a correction has failed: then Redis is away.
    pub(crate) async fn drain(&self, within: Duration, send_rest: impl Fn()) -> UnderWay {
        let failed_before = self.background.begin_draining();
        let mut timer = pin!(sleep_apart(within));
        send_rest();
        let mut left = self.background.drained(timer.as_mut()).await;
        if left.is_nothing() && self.background.failed_since(failed_before) == 0 {
            send_rest();
            left = self.background.drained(timer).await;
        }
        self.background.with_failed(left, failed_before)
    }

    /// Counts a task as under way until it is dropped.
    pub(crate) fn counted(
        &self,
        kind: TaskKind,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        // In this order, so that what a dropped task hands over is counted before the task no longer is.
        let counted = (task, self.background.begin(kind));
        async move {
            let (task, _counted) = counted;
            task.await;
        }
    }

    /// Runs a task in the background. If its runtime ends before the task has begun, the thread runs it.
    pub(crate) fn spawn(self: &Arc<Self>, kind: TaskKind, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn_task(Box::pin(self.counted(kind, task)), false);
    }

    /// Runs a task in the background, as [`spawn`](Self::spawn) does. At home, its first step is made here, so that what it
    /// sends goes before what later calls send.
    pub(crate) fn spawn_begun(self: &Arc<Self>, kind: TaskKind, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn_task(Box::pin(self.counted(kind, task)), true);
    }

    fn spawn_task(self: &Arc<Self>, mut task: Task, begins_here: bool) {
        let (Side::Home, Ok(home)) = (self.side(), Handle::try_current()) else {
            return self.spawn_task_on_thread(task);
        };
        // The runtime polls it once more, so nothing is to be woken.
        let has_ended = begins_here && task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        if !has_ended {
            _ = home.spawn(HomeTask { task, has_begun: begins_here, runtimes: Arc::downgrade(self) });
        }
    }

    /// Runs a task that has to outlast all other runtimes. Without a thread, the task is dropped.
    pub(crate) fn spawn_on_thread(&self, kind: TaskKind, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn_task_on_thread(Box::pin(self.counted(kind, task)));
    }

    fn spawn_task_on_thread(&self, task: Task) {
        if let Ok(thread) = self.thread() {
            thread.spawn(task);
        }
    }
}

/// Returns the runtime of the caller, without which it can neither ask a server nor wait.
///
/// # Errors
///
/// The caller is in none.
pub(crate) fn in_runtime() -> Result<Handle, BackendError> {
    Handle::try_current().map_err(|_| {
        BackendError::misuse("this needs a tokio runtime; without one, decide calls by `Check::blocking_decide`")
    })
}

impl fmt::Debug for Runtimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtimes").finish_non_exhaustive()
    }
}

/// The runtime that drives a connection and everything that belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct Driver {
    pub(crate) side: Side,
    pub(crate) runtimes: Arc<Runtimes>,
}

impl Driver {
    /// Lets the first runtime that asks drive.
    pub(crate) fn home() -> Self {
        Self { side: Side::Home, runtimes: Arc::default() }
    }
}

#[cfg(feature = "redis")]
impl Driver {
    /// Checks that the thread that drives is in this process: see [`Runtimes::check_process`].
    pub(crate) fn check_process(&self) -> Result<(), BackendError> {
        match self.side {
            Side::Home => Ok(()),
            Side::Thread => self.runtimes.check_process(),
        }
    }

    /// Runs a task on the runtime that drives; `None` without a runtime. The task is not counted as under way, as most
    /// of them last as long as a connection.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Option<JoinHandle<()>> {
        self.spawn_task(Box::pin(task))
    }

    fn spawn_task(&self, task: Task) -> Option<JoinHandle<()>> {
        match (self.side, self.runtimes.thread()) {
            (Side::Thread, Ok(thread)) => Some(thread.spawn(task)),
            _ => Some(Handle::try_current().ok()?.spawn(task)),
        }
    }
}

struct HomeTask {
    task: Task,
    has_begun: bool,
    runtimes: Weak<Runtimes>,
}

impl Future for HomeTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.has_begun = true;
        self.task.as_mut().poll(context)
    }
}

impl Drop for HomeTask {
    fn drop(&mut self) {
        if !self.has_begun
            && let Some(runtimes) = self.runtimes.upgrade()
        {
            let task = mem::replace(&mut self.task, Box::pin(async {}));
            runtimes.spawn_task_on_thread(task);
        }
    }
}

// In a simulated world, no process has a thread of its own.
#[cfg(test)]
#[cfg(not(tallygate_world))]
impl Runtimes {
    /// Makes the thread look as it does in a fork of this process.
    pub(crate) fn fork(&self) {
        let thread = self.thread.get_or_init(|| OwnRuntime::start().unwrap().forked());
        assert!(!thread.is_here());
    }
}

/// A background task of which at most one runs at a time.
pub(crate) struct BackgroundTask(Arc<TaskState>);

struct TaskState {
    is_running: AtomicBool,
    /// Sends when the task ends.
    ended: watch::Sender<()>,
}

/// A running task counts as ended when this is dropped, however it ends.
pub(crate) struct RunningTask(Arc<TaskState>);

impl Default for BackgroundTask {
    fn default() -> Self {
        Self(Arc::new(TaskState { is_running: AtomicBool::new(false), ended: watch::channel(()).0 }))
    }
}

impl BackgroundTask {
    /// Begins the task; `None` if it is running.
    pub(crate) fn begin(&self) -> Option<RunningTask> {
        // Read first: threads that only read do not wait for each other.
        let is_running = self.0.is_running.load(Ordering::Relaxed) || self.0.is_running.swap(true, Ordering::AcqRel);
        (!is_running).then(|| RunningTask(Arc::clone(&self.0)))
    }

    /// Returns a receiver that changes when the task ends; `None` if it is not running.
    pub(crate) fn end(&self) -> Option<watch::Receiver<()>> {
        // Subscribed first, so that an end between the two lines is not missed.
        let end = self.0.ended.subscribe();
        self.0.is_running.load(Ordering::Acquire).then_some(end)
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.is_running.store(false, Ordering::Release);
        self.0.ended.send_replace(());
    }
}
