//! What a limiter does in the background, counted until it is done.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use tokio::sync::watch;

/// What a limiter has begun in the background and not ended, and which corrections were lost meanwhile:
/// [`Limiter::drain`](crate::Limiter::drain) returns it.
///
/// It is shown as a list of what there is, or as `nothing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "what was under way when the time was over stays counted, or stays taken until its lease ends"]
pub struct UnderWay {
    leases: usize,
    meters: usize,
    corrections: usize,
    failed_corrections: usize,
    others: usize,
}

/// What a task in the background does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TaskKind {
    Lease,
    Meter,
    Correction,
    Other,
}

/// Counts the tasks of one limiter.
#[derive(Default)]
pub(crate) struct Background {
    under_way: watch::Sender<UnderWay>,
    /// All since the limiter was built.
    failed_corrections: AtomicUsize,
    is_draining: watch::Sender<bool>,
}

/// Counts a task as under way until this is dropped.
pub(crate) struct CountedTask {
    background: Arc<Background>,
    kind: TaskKind,
}

impl UnderWay {
    /// Whether nothing is under way, and no correction was lost.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The number of calls under a concurrency limit in Redis that run, or have ended and still take their place, and of those
    /// that run as the one that is tried after a pause. A place is free again when its lease ends.
    #[must_use]
    pub fn leases(&self) -> usize {
        self.leases
    }

    /// The number of calls whose [meters](crate::Meter) are in use. They are settled when the last one is dropped.
    #[must_use]
    pub fn meters(&self) -> usize {
        self.meters
    }

    /// The number of refunds, settlements, [units taken ahead](crate::guide::prefetch), pauses and ends of pauses that have not
    /// reached Redis. Their calls stay counted as they were. A call of several slots of a cluster is one, too: what a slot has counted
    /// may have to be taken back.
    #[must_use]
    pub fn corrections(&self) -> usize {
        self.corrections
    }

    /// The number of corrections that have failed since `drain` began: Redis has refused them, or has not answered by
    /// the deadline. They are not sent again, so their calls may stay counted as they were. Only a pause is: by later calls of
    /// its subject. Corrections that a caller awaits himself are among them.
    #[must_use]
    pub fn failed_corrections(&self) -> usize {
        self.failed_corrections
    }

    /// The number of other requests to Redis, such as decisions of calls, or policies to list. Nothing has to be taken
    /// back for them.
    #[must_use]
    pub fn others(&self) -> usize {
        self.others
    }

    fn of(&mut self, kind: TaskKind) -> &mut usize {
        match kind {
            TaskKind::Lease => &mut self.leases,
            TaskKind::Meter => &mut self.meters,
            TaskKind::Correction => &mut self.corrections,
            TaskKind::Other => &mut self.others,
        }
    }
}

impl fmt::Display for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.leases, "lease", "leases"),
            (self.meters, "metered call", "metered calls"),
            (self.corrections, "correction", "corrections"),
            (self.failed_corrections, "failed correction", "failed corrections"),
            (self.others, "other request", "other requests"),
        ];
        let mut separator = "";
        for (count, one, several) in counts.into_iter().filter(|(count, ..)| *count > 0) {
            write!(f, "{separator}{count} {}", if count == 1 { one } else { several })?;
            separator = ", ";
        }
        if self.is_nothing() { f.write_str("nothing") } else { Ok(()) }
    }
}

impl Background {
    pub(crate) fn begin(self: &Arc<Self>, kind: TaskKind) -> CountedTask {
        // Only an end is awaited.
        self.under_way.send_if_modified(|under_way| {
            *under_way.of(kind) += 1;
            false
        });
        CountedTask { background: Arc::clone(self), kind }
    }

    pub(crate) fn note_failed_correction(&self) {
        self.failed_corrections.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns how many corrections had failed before.
    pub(crate) fn begin_draining(&self) -> usize {
        self.is_draining.send_replace(true);
        self.failed_corrections.load(Ordering::Acquire)
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.is_draining.borrow()
    }

    /// Awaits a pause of the background, which ends at once when the limiter is drained.
    pub(crate) async fn pause(&self, pause: impl Future<Output = ()>) {
        let mut is_draining = self.is_draining.subscribe();
        first(pause, async { drop(is_draining.wait_for(|is_draining| *is_draining).await) }).await;
    }

    /// Waits until nothing is under way, or until the timer ends. Returns what is under way then.
    pub(crate) async fn drained(&self, timer: impl Future<Output = ()>) -> UnderWay {
        let mut under_way = self.under_way.subscribe();
        let nothing = async {
            drop(under_way.wait_for(UnderWay::is_nothing).await);
            UnderWay::default()
        };
        // What begins after this has seen that nothing is left is not waited for.
        first(nothing, async {
            timer.await;
            *self.under_way.borrow()
        })
        .await
    }

    /// Adds the corrections that have failed since so many had.
    pub(crate) fn with_failed(&self, left: UnderWay, failed_before: usize) -> UnderWay {
        UnderWay { failed_corrections: self.failed_since(failed_before), ..left }
    }

    /// Returns how many corrections have failed since so many had.
    pub(crate) fn failed_since(&self, failed_before: usize) -> usize {
        self.failed_corrections.load(Ordering::Acquire).saturating_sub(failed_before)
    }
}

impl Drop for CountedTask {
    fn drop(&mut self) {
        let counted = &self.background.under_way;
        counted.send_if_modified(|under_way| {
            let count = under_way.of(self.kind);
            *count = count.saturating_sub(1);
            // To wake nobody takes five hundred instructions. Who waits from now on sees that nothing is left.
            under_way.is_nothing() && counted.receiver_count() > 0
        });
    }
}

/// Awaits the first of two futures that is ready.
async fn first<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(output),
        Poll::Pending => other.as_mut().poll(context),
    })
    .await
}
