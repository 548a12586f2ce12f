//! Whether a policy is registered in Redis.

use std::sync::atomic::{AtomicU64, Ordering};

/// The term of a policy that is never registered, and of a limiter that registers none.
pub(crate) const NO_REGISTRY: u64 = u64::MAX;

/// The term in which a limiter has registered the policy last. No two limiters have a term in common.
#[derive(Debug, Default)]
pub(crate) struct Registration(AtomicU64);

impl Registration {
    /// Whether there is nothing to do for a limiter in that term.
    #[inline]
    pub(crate) fn is_done(&self, term: u64) -> bool {
        let known = self.0.load(Ordering::Relaxed);
        known == term || known == NO_REGISTRY || term == NO_REGISTRY
    }

    /// Records that there is nothing to do for a limiter in that term.
    pub(crate) fn set_done(&self, term: u64) {
        if self.0.load(Ordering::Relaxed) != NO_REGISTRY {
            self.0.store(term, Ordering::Relaxed);
        }
    }
}
