//! The metrics of decisions and tallies.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use metrics::{Key, Label, Level, Metadata, gauge, with_recorder};

static METADATA: Metadata<'static> = Metadata::new("tallygate", Level::INFO, Some(module_path!()));

/// All tallies in this process, over all limiters.
static TALLIES: AtomicUsize = AtomicUsize::new(0);

/// The keys of a policy's metrics. Each is made once, so that counting a decision allocates nothing.
#[derive(Debug)]
pub(crate) struct PolicyMetrics {
    seconds: OnceLock<Key>,
    allowed: OnceLock<Key>,
    banned: OnceLock<Key>,
    unavailable: OnceLock<Key>,
    /// Of denials, by rule. An override may have made a duplicate's rule one that is not.
    limited: Box<[OnceLock<Key>]>,
    duplicate: Box<[OnceLock<Key>]>,
}

impl PolicyMetrics {
    pub(crate) fn new(rules: usize) -> Self {
        let key = OnceLock::new;
        let by_rule = || (0..rules).map(|_| key()).collect();
        Self {
            seconds: key(),
            allowed: key(),
            banned: key(),
            unavailable: key(),
            limited: by_rule(),
            duplicate: by_rule(),
        }
    }

    /// Counts a decision, and records how long it took.
    pub(super) fn record(&self, policy: &str, outcome: &'static str, rule: Option<usize>, took: Duration) {
        let make = || decision(policy, outcome, rule);
        match self.decision(outcome, rule) {
            Some(known) => count(known.get_or_init(make)),
            None => count(&make()),
        }
        let seconds = || Key::from_parts("tallygate_decision_seconds", vec![label("policy", policy)]);
        let seconds = self.seconds.get_or_init(seconds);
        with_recorder(|recorder| recorder.register_histogram(seconds, &METADATA)).record(took);
    }

    /// The key of an outcome, by the rule if it was a rule's.
    fn decision(&self, outcome: &str, rule: Option<usize>) -> Option<&OnceLock<Key>> {
        match outcome {
            "allowed" => Some(&self.allowed),
            "banned" => Some(&self.banned),
            "unavailable" => Some(&self.unavailable),
            // An override may have more rules than the policy.
            "duplicate" => self.duplicate.get(rule?),
            "limited" => self.limited.get(rule?),
            // Limits in shadow are tried out: they need not be fast.
            _ => None,
        }
    }
}

fn count(decision: &Key) {
    with_recorder(|recorder| recorder.register_counter(decision, &METADATA)).increment(1);
}

fn decision(policy: &str, outcome: &str, rule: Option<usize>) -> Key {
    let rule = rule.map_or_else(|| "none".to_owned(), |rule| rule.to_string());
    let labels = [("policy", policy), ("rule", &rule), ("outcome", outcome)];
    Key::from_parts("tallygate_decisions_total", labels.map(|(name, value)| label(name, value)).to_vec())
}

fn label(name: &'static str, value: &str) -> Label {
    Label::new(name, value.to_owned())
}

#[allow(clippy::cast_precision_loss, reason = "a gauge is a float, and there are far less than 2^53 tallies")]
pub(super) fn set_tallies(counted: &mut usize, tallies: usize) {
    if *counted == tallies {
        return;
    }
    let before = std::mem::replace(counted, tallies);
    let all = TALLIES.fetch_add(tallies.wrapping_sub(before), Ordering::Relaxed);
    gauge!("tallygate_tallies").set(all.wrapping_add(tallies).wrapping_sub(before) as f64);
}
