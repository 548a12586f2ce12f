//! The metrics of calls that are taken ahead.

use std::sync::OnceLock;

use metrics::{Key, Label, Level, Metadata, Unit, describe_counter, with_recorder};

use super::recorder::tell;
use super::reported_once::ReportedOnce;

const DECISIONS: &str = "tallygate_prefetch_decisions_total";
const UNITS: &str = "tallygate_prefetch_units_total";
const EARLY_ENDS: &str = "tallygate_prefetch_early_ends_total";

static METADATA: Metadata<'static> = Metadata::new("tallygate", Level::INFO, Some(module_path!()));

/// The keys of a policy's metrics of calls that are taken ahead.
#[derive(Debug, Default)]
pub(crate) struct PrefetchMetrics {
    decisions: OnceLock<Key>,
}

impl PrefetchMetrics {
    pub(super) fn count_decision(&self, policy: &str) {
        add(self.decisions.get_or_init(|| key(DECISIONS, policy)), 1);
    }

    #[allow(clippy::unused_self, reason = "these are rare, and need no key that is kept")]
    pub(super) fn count_units(&self, policy: &str, state: &'static str, units: u64) {
        // There from the beginning, so that its rate is known when it first ends.
        add(&key(EARLY_ENDS, policy), 0);
        add(&key(UNITS, policy).with_extra_labels(vec![Label::new("state", state)]), units);
    }

    #[allow(clippy::unused_self, reason = "these are rare, and need no key that is kept")]
    pub(super) fn count_early_end(&self, policy: &str) {
        add(&key(EARLY_ENDS, policy), 1);
    }
}

fn add(key: &Key, number: u64) {
    tell(|| {
        describe();
        with_recorder(|recorder| recorder.register_counter(key, &METADATA)).increment(number);
    });
}

fn key(name: &'static str, policy: &str) -> Key {
    Key::from_parts(name, vec![Label::new("policy", policy.to_owned())])
}

/// Gives the recorder the descriptions, once, with the first of these metrics.
fn describe() {
    static DESCRIBED: ReportedOnce = ReportedOnce::new();
    if DESCRIBED.is_first() {
        describe_counter!(DECISIONS, Unit::Count, "Decisions of this process by what it has taken ahead from Redis.");
        describe_counter!(UNITS, Unit::Count, "What this process has taken ahead, used of it, and given back.");
        describe_counter!(
            EARLY_ENDS,
            Unit::Count,
            "How often a ban or a reset of this process has ended what was taken ahead."
        );
    }
}
