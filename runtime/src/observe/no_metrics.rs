//! Replaces the metrics if the feature `metrics` is off. Nothing is counted.

#![allow(clippy::unused_self, reason = "nothing is counted")]

use tallygate_rules::Rule;

use super::terms::{ChargeChange, Labels, ObservedRule, PrefetchUse, WaitRefusal};

pub(super) const IS_ON: bool = false;

pub(super) use self::NoMetrics as DecisionStart;
pub(crate) use self::{
    NoChange as GaugedCall, NoChange as GaugeChange, NoMetrics as OverrideGauge, NoMetrics as PolicyMetrics,
    NoMetrics as TallyGauge, NoMetrics as UnappliedFileGauge,
};

/// Replaces the metrics of a policy, a gauge, and the time of a decision.
#[derive(Debug, Default)]
pub(crate) struct NoMetrics {}

impl NoMetrics {
    #[inline]
    pub(crate) fn new(_: usize) -> Self {
        Self {}
    }

    #[inline]
    pub(super) fn now() -> Self {
        Self {}
    }

    #[inline]
    pub(super) fn record(&self, _: &str, _: &[Rule], _: Labels<'_>, _: &Self) {}
    pub(super) fn count_cached_denial(&self, _: &str) {}
    pub(super) fn count_charge(&self, _: &str, _: &[Rule], _: &str, _: ChargeChange, _: u64) {}
    pub(super) fn count_ahead(&self, _: &str) {}

    #[inline]
    pub(super) fn concurrent_call(&self, _: &str) -> NoChange {
        NoChange {}
    }

    #[inline]
    pub(super) fn waiting(&self, _: &str) -> NoChange {
        NoChange {}
    }

    #[inline]
    pub(crate) fn set(&mut self, _: usize) {}

    #[inline]
    pub(crate) fn count_replaced(&mut self) {}

    #[inline]
    pub(crate) fn change(&mut self) -> NoChange {
        NoChange {}
    }
}

pub(super) fn add_refused_waits(_: &str, _: WaitRefusal, _: u64) {}
pub(super) fn count_prefetched(_: &str, _: PrefetchUse, _: u64) {}
pub(super) fn count_early_end(_: &str) {}
pub(super) fn count_pause(_: &str, _: Option<&str>) {}
pub(super) fn count_warning(_: &str, _: ObservedRule<'_>) {}
pub(crate) fn begin_metrics_of_files() {}
pub(crate) fn count_early_denial() {}
pub(super) fn count_lost_policies(_: usize) {}

#[derive(Default)]
pub(crate) struct NoChange {}

impl NoChange {
    #[inline]
    pub(crate) fn and(self, _: Self) -> Self {
        self
    }
}

// Implemented so that callers may drop a change to show it, as with the feature on.
impl Drop for NoChange {
    #[inline]
    fn drop(&mut self) {}
}
