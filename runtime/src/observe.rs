//! What the log, the metrics and the spans report of decisions: policy, rule and kind, and never the subject.

mod decision;
mod gauge;
pub(crate) mod log;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
mod reported;
mod warning;

pub(crate) use self::decision::{DecisionOutcome, Observation, Observed, Purpose};
pub(crate) use self::gauge::{OverrideGauge, TallyGauge};
pub(crate) use self::reported::Reported;
pub(crate) use self::warning::warned;

/// The target of all events.
const TARGET: &str = "tallygate";
