//! The leases of a running call, which its permit holds.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use crate::call::StoredLease;
use crate::observe::GaugedCall;

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
