//! The real system.

use std::cell::Cell;
use std::convert::Infallible;
use std::sync::mpsc;
pub(crate) use std::time::Instant;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{io, process, thread};

pub(crate) use foldhash::quality::RandomState;
use tokio::runtime::Builder;
pub(crate) use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
pub(crate) use tokio::time::{Instant as TokioInstant, sleep, sleep_until};

use tracing::instrument::WithSubscriber as _;

#[cfg(feature = "redis")]
pub(crate) use self::redis::*;
use crate::system::home::Task;

thread_local! {
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

#[inline]
pub(crate) fn is_own_thread() -> bool {
    IS_OWN.get()
}

/// The time since 1970.
#[inline]
pub(crate) fn unix() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Sleeps by the clock of the system, on a thread of its own: a caller may have no runtime with timers, a test may have
/// paused the clock of its runtime, and a callback of the application may block every other thread.
pub(crate) async fn sleep_apart(duration: Duration) {
    // Dropping `_awake`, when this ends or is dropped, ends the thread.
    let (_awake, is_dropped) = mpsc::channel::<()>();
    let (over, is_over) = oneshot::channel();
    let wait = move || {
        _ = is_dropped.recv_timeout(duration);
        _ = over.send(());
    };
    match thread::Builder::new().name("tallygate-timer".to_owned()).spawn(wait) {
        Ok(_) => _ = is_over.await,
        Err(_) => sleep(duration).await,
    }
}

/// Runs work that may block a thread, such as reading a file, beside the tasks. `None` if the runtime ends first.
#[cfg(feature = "config")]
pub(crate) async fn beside_tasks<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// A runtime that a thread of its own drives until this value is dropped. Nobody waits for the thread to end.
pub(crate) struct OwnRuntime {
    runtime: Handle,
    /// The process of the thread. A fork has a copy of this value, but no thread.
    process: u32,
    _dropped: oneshot::Sender<Infallible>,
}

impl OwnRuntime {
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (sender, dropped) = oneshot::channel();
        let drive = move || {
            IS_OWN.set(true);
            let _ = runtime.block_on(dropped);
        };
        thread::Builder::new().name("tallygate".to_owned()).spawn(drive)?;
        Ok(Self { runtime: handle, process: process::id(), _dropped: sender })
    }

    /// Whether the thread is in this process.
    pub(crate) fn is_here(&self) -> bool {
        self.process == process::id()
    }

    /// Returns the copy that a fork of this process has.
    #[cfg(test)]
    pub(crate) fn forked(self) -> Self {
        Self { process: self.process ^ 1, ..self }
    }

    /// Runs a task. It logs to the subscriber of its caller.
    pub(crate) fn spawn(&self, task: Task) -> JoinHandle<()> {
        self.runtime.spawn(task.with_current_subscriber())
    }
}

/// Declares a static. In a simulated world, each process has its own.
macro_rules! per_process {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $value:expr;) => {
        $(#[$attribute])*
        $visibility static $name: $type = $value;
    };
}
pub(crate) use per_process;

/// Items that only the store in Redis uses.
#[cfg(feature = "redis")]
mod redis {
    pub(crate) use std::hash::RandomState as StdRandomState;

    pub(crate) use ::redis::aio::MultiplexedConnection as Connection;
    use ::redis::{AsyncConnectionConfig, Client, RedisResult};
    pub(crate) use fastrand::{f64 as random_fraction, shuffle, u64 as random_number};
    pub(crate) use tokio::net::TcpStream;
    use tokio::task::JoinHandle;
    pub(crate) use tokio::task::JoinSet;
    pub(crate) use tokio::time::{timeout, timeout_at};

    use super::{Instant, TokioInstant};
    use crate::system::home::Task;

    /// Runs a task beside this one.
    pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let task: Task = Box::pin(task);
        tokio::spawn(task)
    }

    #[inline]
    pub(crate) fn open(
        client: &Client,
        config: &AsyncConnectionConfig,
    ) -> impl Future<Output = RedisResult<Connection>> + Send {
        client.get_multiplexed_async_connection_with_config(config)
    }

    /// Whether tokio's clock is not the system's, as in a test that has paused it.
    pub(crate) fn clocks_differ() -> bool {
        let before = Instant::now();
        let tokio = TokioInstant::now().into_std();
        let after = Instant::now();
        !(before..=after).contains(&tokio)
    }
}
