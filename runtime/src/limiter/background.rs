//! Tasks in the background, for which no call has to wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// A background task of which at most one runs at a time.
pub(super) struct BackgroundTask(Arc<TaskState>);

struct TaskState {
    is_running: AtomicBool,
    /// Sends when the task ends.
    ended: watch::Sender<()>,
}

/// A running task counts as ended when this is dropped, however it ends.
pub(super) struct RunningTask(Arc<TaskState>);

impl Default for BackgroundTask {
    fn default() -> Self {
        Self(Arc::new(TaskState { is_running: AtomicBool::new(false), ended: watch::channel(()).0 }))
    }
}

impl BackgroundTask {
    /// Begins the task; `None` if it is running.
    pub(super) fn begin(&self) -> Option<RunningTask> {
        // Read first: threads that only read do not wait for each other.
        let is_running = self.0.is_running.load(Ordering::Relaxed) || self.0.is_running.swap(true, Ordering::AcqRel);
        (!is_running).then(|| RunningTask(Arc::clone(&self.0)))
    }

    /// Returns a receiver that changes when the task ends; `None` if it is not running.
    pub(super) fn end(&self) -> Option<watch::Receiver<()>> {
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
