//! Replaces the spans if the feature `tracing-spans` is off.

#![allow(clippy::unused_self, reason = "there is no span")]

use super::terms::ObservedRule;

pub(super) const IS_ON: bool = false;

pub(super) use self::NoSpan as DecisionSpan;

pub(super) struct NoSpan;

impl NoSpan {
    #[inline]
    pub(super) fn begin(_: &str) -> Self {
        Self
    }

    #[inline]
    pub(super) fn none() -> Self {
        Self
    }

    #[inline]
    pub(super) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    #[inline]
    pub(super) fn record(&self, _: &str, _: Option<ObservedRule<'_>>, _: &str) {}
}
