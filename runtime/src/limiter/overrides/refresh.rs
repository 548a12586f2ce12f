//! When the overrides are read from Redis, and which of two reads counts.

use std::time::Duration;

use tokio::sync::watch;

use crate::error::BackendError;
use crate::micros;
use crate::observe::{Quiet, log};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::system::TokioInstant;
use crate::system::home::{BackgroundTask, RunningTask};

/// The age at which the known overrides are refreshed.
const PERIOD: Duration = Duration::from_secs(1);

/// The greatest age at which a decision uses the known overrides. Beyond it, the decision waits for the refresh.
const OLDEST: Duration = Duration::from_secs(2);

/// Knows when the overrides were refreshed last, and whether a refresh is running.
pub(super) struct RefreshTimer {
    task: BackgroundTask,
    started: TokioInstant,
    due_us: AtomicU64,
    state: Mutex<RefreshState>,
}

#[derive(Default)]
struct RefreshState {
    refreshed: Option<TokioInstant>,
    is_failing: bool,
}

impl Default for RefreshTimer {
    fn default() -> Self {
        let (task, state) = (BackgroundTask::default(), Mutex::default());
        Self { task, started: TokioInstant::now(), due_us: AtomicU64::new(0), state }
    }
}

impl RefreshTimer {
    pub(super) fn is_due(&self) -> bool {
        micros::from_duration(self.started.elapsed()) >= self.due_us.load(Ordering::Relaxed)
    }

    /// Begins a refresh, if it is due and none is running.
    pub(super) fn begin(&self) -> Option<RunningTask> {
        // The refresh of another thread may have ended since the caller found that one is due.
        self.task.begin().filter(|_| self.is_due())
    }

    /// Returns a receiver that changes when the running refresh ends, if the known overrides are too old to be used. In
    /// an outage every decision uses them.
    pub(super) fn awaited(&self) -> Option<watch::Receiver<()>> {
        let RefreshState { refreshed, is_failing } = *lock(&self.state);
        let is_old = refreshed.is_none_or(|refreshed| refreshed.elapsed() >= OLDEST);
        if is_old && !is_failing { self.task.end() } else { None }
    }

    pub(super) fn finish(&self, outcome: &Result<(), BackendError>) {
        let now = TokioInstant::now();
        let _quiet = Quiet::begin();
        let mut state = lock(&self.state);
        if let Err(error) = outcome
            && !state.is_failing
        {
            log::overrides_unread(error);
        }
        state.is_failing = outcome.is_err();
        if outcome.is_ok() {
            state.refreshed = Some(now);
        }
        let due = now.saturating_duration_since(self.started) + PERIOD;
        self.due_us.store(micros::from_duration(due), Ordering::Relaxed);
    }
}

/// Numbers the reads of what is stored, so that an older one never replaces a newer one. A refresh that began before an
/// override was set may end after that override was adopted.
#[derive(Default)]
pub(super) struct ReadOrder {
    begun: AtomicU64,
    /// The number of the latest read that was adopted.
    adopted: Mutex<u64>,
}

/// The number of a read, taken before anything was asked.
pub(super) struct ReadNumber(u64);

impl ReadOrder {
    pub(super) fn begin(&self) -> ReadNumber {
        ReadNumber(self.begun.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Adopts the result of a read, unless a newer one was adopted. Only one runs at a time.
    pub(super) fn adopt<T>(&self, reading: &ReadNumber, adopt: impl FnOnce() -> T) -> Option<T> {
        let mut adopted = lock(&self.adopted);
        if reading.0 < *adopted {
            return None;
        }
        *adopted = reading.0;
        Some(adopt())
    }
}
