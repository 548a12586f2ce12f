//! Leases that are on their way back to Redis. The next question of this process about their subject carries them along.
//!
//! A lease goes back by a task, which may run later than the next call of the subject, on another runtime or over another
//! connection. So a call looks here first, and sends what it finds in front of its question. Giving a lease back twice is
//! harmless: no two leases have the same name.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use once_cell::sync::Lazy;

use crate::call::{Call, LeaseName, ReturnedLeases, TallyKey};
use crate::lock::lock;
use crate::system::{RandomState, per_process};

/// The most leases of one subject that one call carries. The others go back by their tasks alone.
const MOST_CARRIED: usize = 100;

per_process! {
    /// Limiters of one process may share a server, so they share the returns.
    static RETURNS: Lazy<LeaseReturns> = Lazy::new(LeaseReturns::default);
}

#[derive(Default)]
struct LeaseReturns {
    by_key: Mutex<HashMap<TallyKey, HashMap<LeaseName, CarriedBy, RandomState>, RandomState>>,
    /// How many there are: most calls find none.
    count: AtomicUsize,
}

/// The limiters that have carried a lease. Each carries it once: another limiter may have another server.
type CarriedBy = Vec<LimiterId>;

/// Tells the limiters of this process apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LimiterId(usize);

/// The leases of one call that are on their way back, until this is dropped.
pub(super) struct ReturnUnderWay {
    returns: &'static LeaseReturns,
    keys: Vec<TallyKey>,
    name: LeaseName,
}

impl ReturnUnderWay {
    /// Records that the leases of a call are on their way back; `None` if it has none.
    pub(super) fn begin(leases: Call<'_>, prefix: &str) -> Option<Self> {
        let name = leases.options.lease?;
        let keys: Vec<_> = leases.keys(prefix).collect();
        let returns: &'static LeaseReturns = &RETURNS;
        let mut by_key = lock(&returns.by_key);
        for key in &keys {
            by_key.entry(*key).or_default().insert(name, CarriedBy::new());
        }
        returns.count.fetch_add(1, Ordering::SeqCst);
        drop(by_key);
        Some(Self { returns, keys, name })
    }
}

impl Drop for ReturnUnderWay {
    fn drop(&mut self) {
        let mut by_key = lock(&self.returns.by_key);
        for key in &self.keys {
            if let Some(names) = by_key.get_mut(key) {
                names.remove(&self.name);
                if names.is_empty() {
                    by_key.remove(key);
                }
            }
        }
        self.returns.count.fetch_sub(1, Ordering::SeqCst);
    }
}

impl LimiterId {
    pub(super) fn next() -> Self {
        per_process! {
            static LIMITERS: AtomicUsize = AtomicUsize::new(0);
        }
        Self(LIMITERS.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the leases that a call of this limiter carries along: leases on their way back of the subjects that it asks
    /// about.
    pub(super) fn carry(self, call: Call<'_>, prefix: &str) -> Vec<ReturnedLeases> {
        if RETURNS.count.load(Ordering::SeqCst) == 0 || !call.policy.has_leases() {
            return Vec::new();
        }
        let leases = call.tally_ids().filter(|id| id.group.lease_us.is_some());
        let mut by_key = lock(&RETURNS.by_key);
        let carried = leases.filter_map(|id| {
            let key = id.key(prefix);
            let mut names = Vec::new();
            for (name, carried_by) in by_key.get_mut(&key)? {
                if names.len() < MOST_CARRIED && !carried_by.contains(&self) {
                    carried_by.push(self);
                    names.push(*name);
                }
            }
            (!names.is_empty()).then_some(ReturnedLeases { key, names })
        });
        carried.collect()
    }

    /// Records that these leases were carried in vain, so that the next call carries them again.
    pub(super) fn lose(self, carried: &[ReturnedLeases]) {
        let mut by_key = lock(&RETURNS.by_key);
        for ReturnedLeases { key, names } in carried {
            let Some(known) = by_key.get_mut(key) else { continue };
            for name in names {
                if let Some(carried_by) = known.get_mut(name) {
                    carried_by.retain(|limiter| *limiter != self);
                }
            }
        }
    }
}
