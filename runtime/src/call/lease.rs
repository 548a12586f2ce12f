//! The leases of concurrent calls, as calls and stores name them.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use super::TallyKey;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_are_the_same_and_later_ones_are_greater() {
        let (one, other) = (LeaseName::next(), LeaseName::next());
        assert!(one < other);
    }
}
