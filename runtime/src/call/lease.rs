//! The leases of concurrent calls: how calls and stores name them, and what holds them while a call is running.

use std::mem::ManuallyDrop;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::TallyKey;
use crate::observe::GaugedCall;
use crate::system::per_process;

/// The name of the leases of one call, unique in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LeaseName(NonZeroU64);

per_process! {
    /// The number of the next lease name.
    static LEASE_NAMES: AtomicU64 = AtomicU64::new(1);
}

impl LeaseName {
    /// Returns a new name. Later names are greater.
    pub(crate) fn next() -> Self {
        let number = LEASE_NAMES.fetch_add(1, Ordering::Relaxed);
        // In practice, the counter never wraps to 0.
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MAX))
    }

    pub(crate) fn number(self) -> u64 {
        self.0.get()
    }
}

/// Where a lease in this process is, so that it is given back without its subject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredLease {
    /// The hash of its tally.
    pub(crate) hash: u64,
    pub(crate) name: LeaseName,
}

/// Leases of one subject that are given back.
#[derive(Clone, Debug)]
pub(crate) struct ReturnedLeases {
    pub(crate) key: TallyKey,
    pub(crate) names: Vec<LeaseName>,
}

/// The leases of a running call. Dropping this gives them back.
pub(crate) type Lease = Box<dyn Send + Sync>;

/// Gives leases in this process.
pub(crate) trait Lender: Send + Sync {
    /// Takes back the only lease of a call, and wakes a caller that waits for it.
    fn take_back(&self, lease: StoredLease);
}

/// The lease of a call in this process that a concurrency limit alone has decided. It is given back on drop.
// A permit holds it without an allocation, which would cost as much as the search for its tally.
pub(crate) struct OnlyLease {
    /// Dropped by hand, so that the code for that is not in each place that drops a permit. Always there before.
    lender: Option<ManuallyDrop<Arc<dyn Lender>>>,
    lease: StoredLease,
    _counted: GaugedCall,
}

impl OnlyLease {
    #[inline]
    pub(crate) fn new(lender: Arc<dyn Lender>, lease: StoredLease, counted: GaugedCall) -> Self {
        Self { lender: Some(ManuallyDrop::new(lender)), lease, _counted: counted }
    }
}

impl Drop for OnlyLease {
    #[inline(never)]
    fn drop(&mut self) {
        if let Some(lender) = self.lender.take() {
            ManuallyDrop::into_inner(lender).take_back(self.lease);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_the_same_and_later_ones_are_greater() {
        let (one, other) = (LeaseName::next(), LeaseName::next());
        assert!(one < other);
    }
}
