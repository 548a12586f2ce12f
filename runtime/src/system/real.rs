//! The real system.

mod own_runtime;

pub(crate) use std::time::Instant;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) use foldhash::quality::RandomState;
pub(crate) use tokio::runtime::Handle;
pub(crate) use tokio::time::{Instant as TokioInstant, sleep, sleep_until};

pub(crate) use self::own_runtime::{OwnRuntime, is_own_thread};
#[cfg(feature = "redis")]
pub(crate) use self::redis::*;

/// The time since 1970.
#[inline]
pub(crate) fn unix() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Runs work that may block a thread, such as reading a file, beside the tasks. `None` if the runtime ends first.
#[cfg(feature = "config")]
pub(crate) async fn beside_tasks<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
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
