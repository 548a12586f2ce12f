//! Queues of callers that wait for admission: one for all calls of the same subjects, in order, and only the first of a queue
//! asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::clock::Clock;
use crate::lock::lock;
use crate::system::RandomState;

/// The wait queues of this process, by the keys of all tallies that decide the calls of their callers. Where only some are the
/// same, one call may have room while another has none. An empty queue is removed.
#[derive(Default)]
pub(crate) struct WaitQueues(Mutex<HashMap<Arc<str>, WaitQueue, RandomState>>);

#[derive(Default)]
struct WaitQueue {
    /// Held by the first caller of the queue. The mutex is fair, so it is handed on in order.
    turn: Arc<tokio::sync::Mutex<()>>,
    callers: usize,
}

impl WaitQueues {
    /// Whether any caller waits for these tallies.
    pub(super) fn has(&self, key: &str) -> bool {
        lock(&self.0).contains_key(key)
    }

    /// Adds a caller at the end of the queue.
    pub(super) fn join(&self, key: Arc<str>) -> QueuePlace<'_> {
        let mut queues = lock(&self.0);
        let queue = queues.entry(Arc::clone(&key)).or_default();
        queue.callers += 1;
        QueuePlace { queues: self, key, turn: Arc::clone(&queue.turn) }
    }

    /// The number of callers in each queue.
    #[cfg(test)]
    pub(super) fn lengths(&self) -> Vec<usize> {
        lock(&self.0).values().map(|queue| queue.callers).collect()
    }

    fn leave(&self, key: &str) {
        let mut queues = lock(&self.0);
        let Some(queue) = queues.get_mut(key) else { return };
        queue.callers -= 1;
        if queue.callers == 0 {
            queues.remove(key);
        }
    }
}

/// A caller's place in a queue. Dropping it leaves the queue.
pub(super) struct QueuePlace<'a> {
    queues: &'a WaitQueues,
    key: Arc<str>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl QueuePlace<'_> {
    /// Waits until the caller is the first of its queue; `None` at the deadline.
    pub(super) async fn turn(
        &self,
        clock: &Clock,
        deadline_us: Option<u64>,
    ) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match deadline_us {
            Some(deadline_us) => clock.timeout_at(deadline_us, self.turn.lock()).await,
            None => Some(self.turn.lock().await),
        }
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.queues.leave(&self.key);
    }
}
