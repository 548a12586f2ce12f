//! The metrics of decisions, warnings, tallies and overrides.

mod recorder;
mod totals;

use std::sync::OnceLock;

use metrics::{Gauge, Key, Label, Level, Metadata, gauge, with_recorder};
use tallygate_rules::Rule;

use self::recorder::{
    AHEAD_DECISIONS, AHEAD_EARLY_ENDS, AHEAD_UNITS, CACHED_DENIALS, CHARGED_UNITS, CONCURRENT_CALLS, DECISIONS,
    LOST_POLICIES, PAUSES, SECONDS, UNAPPLIED_FILES, WAITING_CALLS, WAITS_REFUSED, WARNINGS, tell,
};
pub(crate) use self::totals::{GaugeChange, OverrideGauge, TallyGauge, UnappliedFileGauge, count_early_denial};
use super::terms::{ChargeChange, Labels, ObservedRule, PrefetchUse, WaitRefusal};
use crate::system::Instant;

pub(super) const IS_ON: bool = true;

static METADATA: Metadata<'static> = Metadata::new("tallygate", Level::INFO, Some(module_path!()));

/// The keys of a policy's metrics. Each is made once, so that counting a decision allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct PolicyMetrics {
    rules: usize,
    seconds: OnceLock<Key>,
    concurrent_calls: OnceLock<Key>,
    waiting_calls: OnceLock<Key>,
    cached_denials: OnceLock<Key>,
    decisions_ahead: OnceLock<Key>,
    unavailable: OnceLock<Key>,
    unidentified: OnceLock<Key>,
    /// One for each unit but calls.
    charges: OnceLock<Box<[ChargeKeys]>>,
    by_backend: DecisionKeys,
    /// Empty before the first outage in which this process decides.
    by_standby: OnceLock<Box<DecisionKeys>>,
}

/// The keys of what calls are charged in a unit.
#[derive(Debug)]
struct ChargeKeys {
    unit: Box<str>,
    /// In the order of [`ChargeChange::ALL`].
    by_change: [Key; ChargeChange::ALL.len()],
}

/// The keys of the decisions of the backend, or of the standby.
#[derive(Debug, Default)]
struct DecisionKeys {
    allowed: OnceLock<Key>,
    banned: OnceLock<Key>,
    paused: OnceLock<Key>,
    /// Denials by rule. An override may replace a duplicate rule by another rule.
    limited: Box<[OnceLock<Key>]>,
    duplicate: Box<[OnceLock<Key>]>,
    concurrency: Box<[OnceLock<Key>]>,
}

pub(super) struct DecisionStart(Instant);

impl DecisionStart {
    pub(super) fn now() -> Self {
        Self(Instant::now())
    }
}

impl PolicyMetrics {
    pub(crate) fn new(rules: usize) -> Self {
        Self { rules, by_backend: DecisionKeys::new(rules), ..Self::default() }
    }

    /// Counts a decision of the policy with these rules, and records how long it took.
    pub(super) fn record(&self, policy: &str, rules: &[Rule], labels: Labels<'_>, start: &DecisionStart) {
        match self.decision(labels).filter(|_| labels.is_of(rules)) {
            Some(known) => count(known.get_or_init(|| labels.key(policy)), 1),
            None => count(&labels.key(policy), 1),
        }
        let seconds = self.seconds.get_or_init(|| key_of_policy(SECONDS, policy));
        tell(|| with_recorder(|recorder| recorder.register_histogram(seconds, &METADATA)).record(start.0.elapsed()));
        totals::show_early_denials();
    }

    /// Counts a denial that the cache has answered in place of Redis. It is also counted as a decision.
    pub(super) fn count_cached_denial(&self, policy: &str) {
        count(self.cached_denials.get_or_init(|| key_of_policy(CACHED_DENIALS, policy)), 1);
    }

    /// Counts a decision by hits that were taken ahead.
    pub(super) fn count_ahead(&self, policy: &str) {
        count(self.decisions_ahead.get_or_init(|| key_of_policy(AHEAD_DECISIONS, policy)), 1);
    }

    /// Counts what calls are charged in a unit of these rules.
    pub(super) fn count_charge(&self, policy: &str, rules: &[Rule], unit: &str, change: ChargeChange, amount: u64) {
        let are_new = self.charges.get().is_none();
        let charges = self
            .charges
            .get_or_init(|| rules.iter().filter_map(Rule::unit).map(|unit| ChargeKeys::new(policy, unit)).collect());
        // The counters begin at 0, so that a rate shows the first settlement.
        if are_new {
            charges.iter().flat_map(|keys| &keys.by_change).for_each(|key| count(key, 0));
        }
        let keys = charges.iter().find(|keys| *keys.unit == *unit);
        if let Some(key) = keys.and_then(|keys| keys.by_change.get(change as usize)) {
            count(key, amount);
        }
    }

    /// Adds a concurrent call, until the returned value is dropped.
    pub(super) fn concurrent_call(&self, policy: &str) -> GaugedCall {
        GaugedCall::new(self.concurrent_calls.get_or_init(|| key_of_policy(CONCURRENT_CALLS, policy)))
    }

    /// Adds a caller that waits for admission, until the returned value is dropped.
    pub(super) fn waiting(&self, policy: &str) -> GaugedCall {
        // The counters begin at 0, so that a rate shows the first refusal.
        if self.waiting_calls.get().is_none() {
            for reason in WaitRefusal::ALL {
                add_refused_waits(policy, reason, 0);
            }
        }
        GaugedCall::new(self.waiting_calls.get_or_init(|| key_of_policy(WAITING_CALLS, policy)))
    }

    /// The key of a decision; `None` for rare decisions.
    fn decision(&self, labels: Labels<'_>) -> Option<&OnceLock<Key>> {
        match labels.decided_by {
            "backend" => self.by_backend.get(labels),
            "standby" => self.by_standby.get_or_init(|| Box::new(DecisionKeys::new(self.rules))).get(labels),
            _ if labels.outcome == "unidentified" => Some(&self.unidentified),
            _ => (labels.outcome == "unavailable").then_some(&self.unavailable),
        }
    }
}

/// A call that a gauge counts until this is dropped.
#[derive(Default)]
pub(crate) struct GaugedCall(Option<Gauge>);

impl GaugedCall {
    fn new(gauge: &Key) -> Self {
        Self(tell(|| {
            let gauge = with_recorder(|recorder| recorder.register_gauge(gauge, &METADATA));
            gauge.increment(1.0);
            gauge
        }))
    }
}

impl Drop for GaugedCall {
    fn drop(&mut self) {
        if let Some(gauge) = &self.0 {
            tell(|| gauge.decrement(1.0));
        }
    }
}

impl ChargeKeys {
    fn new(policy: &str, unit: &str) -> Self {
        let labels = |change: ChargeChange| vec![label("unit", unit), label("change", change.as_str())];
        let key = |change| key_of_policy(CHARGED_UNITS, policy).with_extra_labels(labels(change));
        Self { unit: unit.into(), by_change: ChargeChange::ALL.map(key) }
    }
}

impl DecisionKeys {
    fn new(rules: usize) -> Self {
        let by_rule = || (0..rules).map(|_| OnceLock::new()).collect();
        Self { limited: by_rule(), duplicate: by_rule(), concurrency: by_rule(), ..Self::default() }
    }

    fn get(&self, labels: Labels<'_>) -> Option<&OnceLock<Key>> {
        match labels.outcome {
            "allowed" => Some(&self.allowed),
            "banned" => Some(&self.banned),
            "paused" => Some(&self.paused),
            // An override may have more rules than the policy.
            "duplicate" => self.duplicate.get(labels.rule?.position),
            "limited" => self.limited.get(labels.rule?.position),
            "concurrency" => self.concurrency.get(labels.rule?.position),
            // Limits in shadow are being tried out, so they need not be fast.
            _ => None,
        }
    }
}

impl Labels<'_> {
    /// Whether the policy itself has the labelled rule at its position. An override may put another rule there.
    fn is_of(self, rules: &[Rule]) -> bool {
        let own = |rule: ObservedRule<'_>| {
            rules.get(rule.position).is_some_and(|own| ObservedRule::new(rule.position, own) == rule)
        };
        self.rule.is_none_or(own)
    }

    fn key(self, policy: &str) -> Key {
        let rule = self.rule.map_or_else(|| "none".to_owned(), ObservedRule::label);
        let labels = [("policy", policy), ("rule", &rule), ("outcome", self.outcome), ("decided_by", self.decided_by)];
        let labels = labels.map(|(name, value)| label(name, value)).to_vec();
        Key::from_parts(DECISIONS, labels).with_extra_labels(unit_label(self.rule))
    }
}

/// Counts calls that are denied at once although they may wait.
pub(super) fn add_refused_waits(policy: &str, reason: WaitRefusal, number: u64) {
    count(&Key::from_parts(WAITS_REFUSED, vec![label("policy", policy), label("reason", reason.as_str())]), number);
}

/// Counts hits that were taken ahead, by what happened to them.
pub(super) fn count_prefetched(policy: &str, used: PrefetchUse, units: u64) {
    // Begun here, so that its rate is known when hits first end early.
    count(&key_of_policy(AHEAD_EARLY_ENDS, policy), 0);
    count(&key_of_policy(AHEAD_UNITS, policy).with_extra_labels(vec![label("state", used.as_str())]), units);
}

/// Counts that hits taken ahead have ended before their time.
pub(super) fn count_early_end(policy: &str) {
    count(&key_of_policy(AHEAD_EARLY_ENDS, policy), 1);
}

/// Counts a pause by the field of the answer that asked for it, if an answer did.
pub(super) fn count_pause(policy: &str, field: Option<&str>) {
    let labels = vec![label("policy", policy), label("field", field.unwrap_or("none"))];
    count(&Key::from_parts(PAUSES, labels), 1);
}

/// Counts a subject that has come near the limit of this rule.
pub(super) fn count_warning(policy: &str, rule: ObservedRule<'_>) {
    let labels = vec![label("policy", policy), label("rule", &rule.label())];
    count(&Key::from_parts(WARNINGS, labels).with_extra_labels(unit_label(Some(rule))), 1);
}

/// Begins the metrics of a watched file at zero, so that an alert sees their first change.
pub(crate) fn begin_metrics_of_files() {
    count_lost_policies(0);
    tell(|| gauge!(UNAPPLIED_FILES).increment(0.0));
}

pub(super) fn count_lost_policies(number: usize) {
    count(&Key::from_static_name(LOST_POLICIES), number as u64);
}

fn count(key: &Key, number: u64) {
    tell(|| with_recorder(|recorder| recorder.register_counter(key, &METADATA)).increment(number));
}

fn label(name: &'static str, value: &str) -> Label {
    Label::new(name, value.to_owned())
}

/// Only a rule that counts another unit than calls has the label.
fn unit_label(rule: Option<ObservedRule<'_>>) -> Vec<Label> {
    rule.and_then(|rule| rule.unit).map(|unit| label("unit", unit)).into_iter().collect()
}

fn key_of_policy(name: &'static str, policy: &str) -> Key {
    Key::from_parts(name, vec![label("policy", policy)])
}
