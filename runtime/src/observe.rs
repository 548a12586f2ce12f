//! The log, the metrics and the spans of decisions. They name the policy, the rule and the kind, and never the subject.

mod decision;
mod line_budget;
pub(crate) mod log;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
#[cfg(not(feature = "metrics"))]
mod no_metrics;
#[cfg(not(feature = "tracing-spans"))]
mod no_span;
mod once;
#[cfg(feature = "tracing-spans")]
mod span;
mod terms;
mod voice;

/// Implements `Debug` with the name of a type, and with the given fields or named values. All others are left out,
/// because they may be personal or mean nothing to a reader.
macro_rules! opaque_debug {
    ($([$($generics:tt)*])? $type:ident $(<$($arguments:tt),*>)? $({ $($field:ident),+ })?) => {
        impl $(<$($generics)*>)? std::fmt::Debug for $type $(<$($arguments),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $($(.field(stringify!($field), &self.$field))+)?
                    .finish_non_exhaustive()
            }
        }
    };
    ($type:ident $(<$($arguments:tt),*>)?, $this:ident => { $($name:ident: $value:expr),+ }) => {
        impl std::fmt::Debug for $type $(<$($arguments),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                f.debug_struct(stringify!($type))$(.field(stringify!($name), &$value))+.finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use opaque_debug;

pub(crate) use self::decision::{DecisionOutcome, Observation, Observed, Purpose};
pub(crate) use self::line_budget::LineBudget;
pub(crate) use self::metrics::{GaugeChange, GaugedCall, OverrideGauge, PolicyMetrics, TallyGauge};
pub(crate) use self::metrics::{UnappliedFileGauge, begin_metrics_of_files, count_early_denial};
#[cfg(not(feature = "metrics"))]
use self::no_metrics as metrics;
#[cfg(not(feature = "tracing-spans"))]
use self::no_span as span;
pub(crate) use self::once::{ReportedOnce, ReportedTexts, has_listeners, note_listener};
pub(crate) use self::terms::{ChargeChange, ObservedRule, PrefetchUse, WaitRefusal};
pub(crate) use self::voice::{Quiet, report};
