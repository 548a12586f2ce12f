//! The value that the clones of a policy share: counted by reference, or for the life of the process.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

pub(super) enum Shared<T: 'static> {
    Counted(Arc<T>),
    /// A static value is never dropped, so no clone touches a counter: threads that share a counter slow each other
    /// down.
    Static(&'static T),
}

/// A reference that does not keep the shared value alive.
pub(super) enum WeakShared<T: 'static> {
    Counted(Weak<T>),
    Static(&'static T),
}

impl<T> Shared<T> {
    pub(super) fn counted(value: T) -> Self {
        Self::Counted(Arc::new(value))
    }

    pub(super) fn leaked(value: T) -> Self {
        Self::Static(Box::leak(Box::new(value)))
    }

    /// Shares another value for as long as this one.
    pub(super) fn share_alike(&self, value: T) -> Self {
        match self {
            Self::Counted(_) => Self::counted(value),
            Self::Static(_) => Self::leaked(value),
        }
    }

    #[cfg(feature = "config")]
    pub(super) fn is_static(&self) -> bool {
        matches!(self, Self::Static(_))
    }

    pub(super) fn downgrade(&self) -> WeakShared<T> {
        match self {
            Self::Counted(value) => WeakShared::Counted(Arc::downgrade(value)),
            Self::Static(value) => WeakShared::Static(value),
        }
    }
}

impl<T> Clone for Shared<T> {
    #[inline]
    fn clone(&self) -> Self {
        match self {
            Self::Counted(value) => Self::Counted(Arc::clone(value)),
            Self::Static(value) => Self::Static(value),
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Self::Counted(value) => value,
            Self::Static(value) => value,
        }
    }
}

impl<T> WeakShared<T> {
    pub(super) fn upgrade(&self) -> Option<Shared<T>> {
        match self {
            Self::Counted(value) => value.upgrade().map(Shared::Counted),
            Self::Static(value) => Some(Shared::Static(value)),
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Counted(value) if value.strong_count() == 0)
    }
}

/// The term of a policy that is never registered, and of a limiter that registers no policies.
pub(crate) const NO_REGISTRY: u64 = u64::MAX;

/// The term of the limiter that has registered the policy last. No two limiters have a term in common.
#[derive(Debug, Default)]
pub(crate) struct Registration(AtomicU64);

impl Registration {
    /// Returns whether a limiter in that term has nothing to register.
    #[inline]
    pub(crate) fn is_done(&self, term: u64) -> bool {
        let known = self.0.load(Ordering::Relaxed);
        known == term || known == NO_REGISTRY || term == NO_REGISTRY
    }

    /// Records that a limiter in that term has nothing to register.
    pub(crate) fn set_done(&self, term: u64) {
        if self.0.load(Ordering::Relaxed) != NO_REGISTRY {
            self.0.store(term, Ordering::Relaxed);
        }
    }
}
