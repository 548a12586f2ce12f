//! When the nodes of a cluster are asked which slots they serve, and for how long their answer is enough.

use std::time::Duration;

use tokio::sync::watch;

use crate::error::BackendError;
use crate::store::redis::connection::address::Host;
use crate::store::redis::connection::real_time;
use crate::system::Instant;

/// For how long after its beginning calls wait for what the nodes answer. They may have to be connected to first.
const MOMENT: Duration = Duration::from_millis(50);

/// Why the nodes are asked which slots they serve.
#[derive(Clone, Copy)]
pub(crate) enum Reason<'a> {
    /// The map is not known yet.
    Start,
    /// A slot was not where it was.
    Moved,
    /// This node does not answer, or does not serve.
    Away(&'a Host),
}

/// The outcome of a refresh. It is closed without one if its runtime is gone.
type RefreshOutcome = Option<Result<(), BackendError>>;

/// When the nodes were asked, and the outcome.
#[derive(Clone)]
pub(crate) struct Refresh {
    began: Instant,
    outcome: watch::Receiver<RefreshOutcome>,
}

impl Refresh {
    /// Begins now, and returns what sends the outcome.
    pub(super) fn begin(now: Instant) -> (watch::Sender<RefreshOutcome>, Self) {
        let (done, outcome) = watch::channel(None);
        (done, Self { began: now, outcome })
    }

    /// Whether the nodes were asked so short a time ago that calls wait for what they answer.
    pub(super) fn has_just_begun(&self) -> bool {
        self.began.elapsed() < MOMENT
    }

    /// Waits for the outcome; `None` if it takes longer than that.
    pub(super) async fn outcome(mut self, until: Instant) -> RefreshOutcome {
        let asked = async { self.outcome.wait_for(Option::is_some).await.ok()?.clone() };
        let gone = || Err(BackendError::away("redis: the runtime was shut down"));
        Some(real_time::wait_for_bounded(until, asked).await?.unwrap_or_else(gone))
    }

    /// Whether no other refresh is needed: this one is running, or began a moment ago.
    pub(super) fn is_enough(&self, reason: Reason<'_>, now: Instant) -> bool {
        let is_done = self.outcome.borrow().is_some();
        if !is_done && self.outcome.has_changed().is_err() {
            // Its runtime is gone.
            return false;
        }
        let pause = match reason {
            // A redirect has corrected what the caller needs.
            Reason::Moved => Duration::from_secs(1),
            Reason::Start | Reason::Away(_) => Duration::from_millis(100),
        };
        !is_done || now.saturating_duration_since(self.began) < pause
    }
}
