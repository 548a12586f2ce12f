//! What the log, the metrics and the spans report of decisions: policy, rule and kind, and never the subject.

mod decision;
pub(crate) mod log;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
mod tally_gauge;

pub(crate) use self::decision::{Observation, Observed, Outcome, Purpose};
pub(crate) use self::tally_gauge::TallyGauge;

/// The target of all events.
const TARGET: &str = "tallygate";
