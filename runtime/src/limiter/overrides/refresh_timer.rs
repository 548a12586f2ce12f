//! When the overrides are refreshed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::BackendError;
use crate::micros;
use crate::observe::log;

/// The age at which the known overrides are refreshed.
const PERIOD: Duration = Duration::from_secs(1);

/// The greatest age at which a decision uses the known overrides. Beyond it, the decision waits for the refresh.
const OLDEST: Duration = Duration::from_secs(2);

/// Knows when the overrides were refreshed last, and whether a refresh is running.
#[derive(Debug)]
pub(super) struct RefreshTimer {
    started: Instant,
    due_us: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Closed when the running refresh ends.
    running: Option<watch::Receiver<()>>,
    refreshed: Option<Instant>,
    failing: bool,
}

impl Default for RefreshTimer {
    fn default() -> Self {
        Self { started: Instant::now(), due_us: AtomicU64::new(0), state: Mutex::default() }
    }
}

impl RefreshTimer {
    pub(super) fn is_due(&self, now: Instant) -> bool {
        micros::from_duration(now.saturating_duration_since(self.started)) >= self.due_us.load(Ordering::Relaxed)
    }

    /// Starts a refresh if it is due. Returns what to wait for, until it closes, if the known overrides are too old.
    pub(super) fn start(&self, refresh: impl FnOnce(watch::Sender<()>)) -> Option<watch::Receiver<()>> {
        let now = Instant::now();
        let mut state = self.lock();
        // A refresh whose runtime is gone has dropped the other end.
        let running = state.running.take().filter(|running| running.has_changed().is_ok());
        if running.is_none() && !self.is_due(now) {
            return None;
        }
        let running = running.unwrap_or_else(|| {
            let (done, running) = watch::channel(());
            refresh(done);
            running
        });
        state.running = Some(running.clone());
        // In an outage every decision uses the known overrides.
        let is_old = state.refreshed.is_none_or(|refreshed| now.saturating_duration_since(refreshed) >= OLDEST);
        (is_old && !state.failing).then_some(running)
    }

    pub(super) fn finish(&self, outcome: &Result<(), BackendError>) {
        let now = Instant::now();
        let mut state = self.lock();
        match outcome {
            Ok(()) => {
                state.refreshed = Some(now);
                state.failing = false;
            }
            Err(error) => {
                if !state.failing {
                    log::overrides_unread(error);
                }
                state.failing = true;
            }
        }
        let due = now.saturating_duration_since(self.started) + PERIOD;
        self.due_us.store(micros::from_duration(due), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
