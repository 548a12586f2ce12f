//! Callers of this process that wait for a lease, as there are too many concurrent calls.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::call::TallyKey;
use crate::lock::lock;
use crate::system::RandomState;

/// Who waits for leases, by the keys of these.
#[derive(Debug, Default)]
pub(super) struct LeaseWaiters {
    waiting: Mutex<HashMap<TallyKey, VecDeque<Arc<Notify>>, RandomState>>,
    /// How many there are: most leases are freed while nobody waits.
    count: AtomicUsize,
}

/// A caller that waits until it is dropped.
#[derive(Debug)]
pub(super) struct LeaseWaiter<'a> {
    all: &'a LeaseWaiters,
    keys: Vec<TallyKey>,
    notify: Arc<Notify>,
}

impl LeaseWaiters {
    /// Adds a caller that waits for leases of these keys.
    pub(super) fn join(&self, keys: Vec<TallyKey>) -> LeaseWaiter<'_> {
        let notify = Arc::new(Notify::new());
        let mut waiting = lock(&self.waiting);
        for key in &keys {
            waiting.entry(*key).or_default().push_back(Arc::clone(&notify));
        }
        self.count.fetch_add(1, Ordering::SeqCst);
        drop(waiting);
        LeaseWaiter { all: self, keys, notify }
    }

    /// Wakes one of those that wait for each of these keys, in turn: one lease that is freed is for one of them. If that
    /// caller is gone meanwhile, the others ask by themselves soon.
    pub(super) fn notify(&self, keys: impl Iterator<Item = TallyKey>) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut waiting = lock(&self.waiting);
        for key in keys {
            if let Some(queue) = waiting.get_mut(&key)
                && let Some(first) = queue.pop_front()
            {
                first.notify_one();
                queue.push_back(first);
            }
        }
    }
}

impl LeaseWaiter<'_> {
    /// Waits for a lease to be freed, or returns at once if one was since the last time.
    pub(super) async fn freed(&self) {
        self.notify.notified().await;
    }
}

impl Drop for LeaseWaiter<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.all.waiting);
        for key in &self.keys {
            if let Some(queue) = waiting.get_mut(key) {
                queue.retain(|notify| !Arc::ptr_eq(notify, &self.notify));
                if queue.is_empty() {
                    waiting.remove(key);
                }
            }
        }
        self.all.count.fetch_sub(1, Ordering::SeqCst);
    }
}
