//! The metrics of decisions and tallies.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use metrics::{Key, Label, Level, Metadata, gauge, with_recorder};

use super::Outcome;
use crate::{Kind, Policy};

static METADATA: Metadata<'static> = Metadata::new("tallygate", Level::INFO, Some(module_path!()));

/// All tallies in this process, whatever limiter they are of.
static TALLIES: AtomicUsize = AtomicUsize::new(0);

/// The keys of a policy's metrics. Each is made once, so that counting a decision allocates nothing.
#[derive(Debug)]
pub(crate) struct Meters {
    seconds: OnceLock<Key>,
    admitted: OnceLock<Key>,
    banned: OnceLock<Key>,
    unavailable: OnceLock<Key>,
    /// Of denials, by rule. An override may have made a duplicate's rule one that is not.
    limited: Box<[OnceLock<Key>]>,
    duplicate: Box<[OnceLock<Key>]>,
}

impl Meters {
    pub(crate) fn new(rules: usize) -> Self {
        let key = OnceLock::new;
        let by_rule = || (0..rules).map(|_| key()).collect();
        let (limited, duplicate) = (by_rule(), by_rule());
        Self { seconds: key(), admitted: key(), banned: key(), unavailable: key(), limited, duplicate }
    }

    /// A decision is named by what it was, and by the rule if it was a rule's.
    fn decision(&self, outcome: Outcome, rule: Option<usize>) -> Option<&OnceLock<Key>> {
        match (outcome, rule) {
            (Outcome::Allowed, _) => Some(&self.admitted),
            // Limits that are tried out are not what has to be fast.
            (Outcome::Shadow, _) => None,
            (Outcome::Rejected(Kind::Banned), _) => Some(&self.banned),
            (Outcome::Rejected(Kind::Unavailable), _) => Some(&self.unavailable),
            // An override may have more rules than the policy.
            (Outcome::Rejected(Kind::Duplicate), rule) => self.duplicate.get(rule?),
            (Outcome::Rejected(_), rule) => self.limited.get(rule?),
        }
    }
}

pub(super) fn decided(policy: &Policy, outcome: Outcome, rule: Option<usize>, took: Duration) {
    let meters = policy.meters();
    let make = || decision(policy, outcome, rule);
    match meters.decision(outcome, rule) {
        Some(known) => count(known.get_or_init(make)),
        None => count(&make()),
    }
    let seconds = || Key::from_parts("tallygate_decision_seconds", vec![label("policy", policy.name())]);
    let seconds = meters.seconds.get_or_init(seconds);
    with_recorder(|recorder| recorder.register_histogram(seconds, &METADATA)).record(took);
}

fn count(decision: &Key) {
    with_recorder(|recorder| recorder.register_counter(decision, &METADATA)).increment(1);
}

fn decision(policy: &Policy, outcome: Outcome, rule: Option<usize>) -> Key {
    let rule = rule.map_or_else(|| "none".to_owned(), |rule| rule.to_string());
    let labels = [("policy", policy.name()), ("rule", &rule), ("outcome", &outcome.to_string())];
    Key::from_parts("tallygate_decisions_total", labels.map(|(name, value)| label(name, value)).to_vec())
}

fn label(name: &'static str, value: &str) -> Label {
    Label::new(name, value.to_owned())
}

#[allow(clippy::cast_precision_loss, reason = "a gauge is a float, and there are far less than 2^53 tallies")]
pub(super) fn tallies(counted: &mut usize, tallies: usize) {
    if *counted == tallies {
        return;
    }
    let before = std::mem::replace(counted, tallies);
    let all = TALLIES.fetch_add(tallies.wrapping_sub(before), Ordering::Relaxed);
    gauge!("tallygate_tallies").set(all.wrapping_add(tallies).wrapping_sub(before) as f64);
}
