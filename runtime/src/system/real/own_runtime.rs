//! A thread of the library that drives a runtime.

use std::cell::Cell;
use std::convert::Infallible;
use std::{io, process, thread};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::instrument::WithSubscriber as _;

use crate::system::home::Task;

thread_local! {
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

#[inline]
pub(crate) fn is_own_thread() -> bool {
    IS_OWN.get()
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
