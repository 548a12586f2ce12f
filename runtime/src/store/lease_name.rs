//! The names of the leases of concurrent calls.

#[cfg(feature = "redis")]
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU64;
#[cfg(feature = "redis")]
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the leases of one call are called. No two calls of any process have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LeaseName(NonZeroU64);

/// How many calls of this process have a name.
static CALLS: AtomicU64 = AtomicU64::new(1);

/// What tells this process from all others: random, as the keys of hash tables are.
#[cfg(feature = "redis")]
static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one("tallygate"));

impl LeaseName {
    /// Returns the name of another call. Names are in the order of the calls.
    pub(crate) fn next() -> Self {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        // There are not so many calls.
        Self(NonZeroU64::new(call).unwrap_or(NonZeroU64::MAX))
    }

    /// Returns the name as it is stored.
    #[cfg(feature = "redis")]
    pub(crate) fn bytes(self) -> [u8; tallygate_lua::LEASE_NAME_BYTES] {
        let (process, call) = (u128::from(*PROCESS), u128::from(self.0.get()));
        (process << 64 | call).to_be_bytes()
    }
}

/// What becomes of the leases of a call.
#[cfg(feature = "redis")]
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
        #[cfg(feature = "redis")]
        assert!(one.bytes() < other.bytes() && one.bytes()[..8] == other.bytes()[..8]);
    }
}
