//! Callers of this process that wait for a call to be over.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;
use tokio::sync::Notify;

use crate::store::TallyKey;

/// Who listens for concurrent calls to be over, by the keys of their leases.
#[derive(Debug, Default)]
pub(super) struct Releases {
    listeners: Mutex<HashMap<TallyKey, VecDeque<Arc<Notify>>, RandomState>>,
    /// How many there are: most calls are over while nobody waits.
    count: AtomicUsize,
}

/// A caller that listens until it is dropped.
#[derive(Debug)]
pub(super) struct Listener<'a> {
    releases: &'a Releases,
    keys: Vec<TallyKey>,
    notify: Arc<Notify>,
}

impl Releases {
    /// Listens for calls to be over that have leases of these keys.
    pub(super) fn listen(&self, keys: Vec<TallyKey>) -> Listener<'_> {
        let notify = Arc::new(Notify::new());
        let mut listeners = self.lock();
        for key in &keys {
            listeners.entry(*key).or_default().push_back(Arc::clone(&notify));
        }
        self.count.fetch_add(1, Ordering::SeqCst);
        drop(listeners);
        Listener { releases: self, keys, notify }
    }

    /// Wakes one of those that listen to each of these keys, in turn: one call that is over makes room for one. If that is
    /// gone meanwhile, the others ask by themselves soon.
    pub(super) fn tell(&self, keys: impl Iterator<Item = TallyKey>) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut listeners = self.lock();
        for key in keys {
            if let Some(listening) = listeners.get_mut(&key)
                && let Some(first) = listening.pop_front()
            {
                first.notify_one();
                listening.push_back(first);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TallyKey, VecDeque<Arc<Notify>>, RandomState>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener<'_> {
    /// Waits for a call to be over, or returns at once if one was since the last time.
    pub(super) async fn released(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        let mut listeners = self.releases.lock();
        for key in &self.keys {
            if let Some(others) = listeners.get_mut(key) {
                others.retain(|notify| !Arc::ptr_eq(notify, &self.notify));
                if others.is_empty() {
                    listeners.remove(key);
                }
            }
        }
        self.releases.count.fetch_sub(1, Ordering::SeqCst);
    }
}
