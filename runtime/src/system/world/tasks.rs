//! Tasks, which stay in the process that begins them.

use std::future::Future;
use std::io;

use tokio::runtime::{Id, RuntimeFlavor, TryCurrentError};
use tokio::task::{AbortHandle, JoinError, JoinHandle};

use super::process::{InProcess, current};
use crate::system::home::Task;

#[derive(Debug)]
pub(crate) struct Handle(tokio::runtime::Handle);

impl Handle {
    pub(crate) fn try_current() -> Result<Self, TryCurrentError> {
        tokio::runtime::Handle::try_current().map(Self)
    }

    pub(crate) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let task = self.0.spawn(InProcess::here(task));
        announce(task.abort_handle());
        task
    }

    pub(crate) fn id(&self) -> Id {
        self.0.id()
    }

    #[cfg(feature = "redis")]
    pub(crate) fn runtime_flavor(&self) -> RuntimeFlavor {
        self.0.runtime_flavor()
    }
}

/// A thread with a runtime. It has no value, because a world runs in one thread.
pub(crate) enum NoOwnRuntime {}

impl NoOwnRuntime {
    pub(crate) fn start() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn spawn(&self, _: Task) -> JoinHandle<()> {
        match *self {}
    }

    pub(crate) fn is_here(&self) -> bool {
        match *self {}
    }
}

pub(crate) fn is_own_thread() -> bool {
    false
}

#[cfg(feature = "redis")]
pub(crate) fn spawn<F>(task: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    Handle(tokio::runtime::Handle::current()).spawn(task)
}

/// Runs work that may block a thread. In the world, no time passes meanwhile.
#[cfg(feature = "config")]
#[allow(clippy::unused_async, reason = "outside of the world it waits for another thread")]
pub(crate) async fn beside_tasks<T>(work: impl FnOnce() -> T) -> Option<T> {
    Some(work())
}

/// Tasks that end when the set is dropped.
#[cfg(feature = "redis")]
pub(crate) struct JoinSet<T>(tokio::task::JoinSet<T>);

#[cfg(feature = "redis")]
impl<T: Send + 'static> JoinSet<T> {
    pub(crate) fn new() -> Self {
        Self(tokio::task::JoinSet::new())
    }

    pub(crate) fn spawn(&mut self, task: impl Future<Output = T> + Send + 'static) -> AbortHandle {
        let task = self.0.spawn(InProcess::here(task));
        announce(task.clone());
        task
    }

    pub(crate) async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.0.join_next().await
    }
}

fn announce(task: AbortHandle) {
    if let Some(process) = current() {
        process.spawned(task);
    }
}
