//! The metrics of calls that are taken ahead.

use std::sync::OnceLock;

use metrics::{Key, Unit, describe_counter, with_recorder};

use super::decision::PrefetchUse;
use super::metrics::{METADATA, key_of_policy, label};

const DECISIONS: &str = "tallygate_prefetch_decisions_total";
const UNITS: &str = "tallygate_prefetch_units_total";
const EARLY_ENDS: &str = "tallygate_prefetch_early_ends_total";

/// The keys of a policy's metrics of calls that are taken ahead.
#[derive(Debug, Default)]
pub(crate) struct PrefetchMetrics {
    decisions: OnceLock<Key>,
}

impl PrefetchMetrics {
    pub(super) fn count_decision(&self, policy: &str) {
        add(self.decisions.get_or_init(|| key_of_policy(DECISIONS, policy)), 1);
    }

    #[allow(clippy::unused_self, reason = "these are rare, and need no key that is kept")]
    pub(super) fn count_units(&self, policy: &str, used: PrefetchUse, units: u64) {
        let used = match used {
            PrefetchUse::Taken => "taken",
            PrefetchUse::Used => "used",
            PrefetchUse::GivenBack => "given_back",
        };
        let key = key_of_policy(UNITS, policy);
        add(&key.with_extra_labels(vec![label("state", used)]), units);
    }

    #[allow(clippy::unused_self, reason = "these are rare, and need no key that is kept")]
    pub(super) fn count_early_end(&self, policy: &str) {
        add(&key_of_policy(EARLY_ENDS, policy), 1);
    }
}

fn add(key: &Key, number: u64) {
    with_recorder(|recorder| recorder.register_counter(key, &METADATA)).increment(number);
}

pub(super) fn describe() {
    describe_counter!(DECISIONS, Unit::Count, "Decisions of this process by calls that it has taken ahead from Redis.");
    describe_counter!(UNITS, Unit::Count, "What this process has taken ahead, used of it, and given back.");
    describe_counter!(
        EARLY_ENDS,
        Unit::Count,
        "How often an override, a ban or a reset has ended what was taken ahead."
    );
}
