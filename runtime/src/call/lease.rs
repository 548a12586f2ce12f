//! The leases of concurrent calls: their names, and what becomes of them.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the leases of one call are called. No two calls of any process have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LeaseName(NonZeroU64);

/// How many calls of this process have a name.
static CALLS: AtomicU64 = AtomicU64::new(1);

impl LeaseName {
    /// Returns the name of another call. Names are in the order of the calls.
    pub(crate) fn next() -> Self {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        // There are not so many calls.
        Self(NonZeroU64::new(call).unwrap_or(NonZeroU64::MAX))
    }

    pub(crate) fn number(self) -> u64 {
        self.0.get()
    }
}

/// What becomes of the leases of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseChange {
    Renewed,
    GivenBack,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_calls_have_the_same_name_and_later_ones_are_greater() {
        let (one, other) = (LeaseName::next(), LeaseName::next());
        assert!(one < other);
    }
}
