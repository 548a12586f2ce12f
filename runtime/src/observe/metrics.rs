//! The metrics of decisions, warnings, tallies and overrides.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use metrics::{
    Gauge, Key, Label, Level, Metadata, Unit, describe_counter, describe_gauge, describe_histogram, gauge,
    with_recorder,
};

use tallygate_rules::Rule;

use super::prefetch_metrics::PrefetchMetrics;
use super::recorder;
use super::reported_once::ReportedOnce;
use super::rule::ObservedRule;
use super::wait_refusal::WaitRefusal;

const DECISIONS: &str = "tallygate_decisions_total";
const SECONDS: &str = "tallygate_decision_seconds";
const CACHED_DENIALS: &str = "tallygate_cached_denials_total";
const CONCURRENT_CALLS: &str = "tallygate_concurrent_calls";
const WARNINGS: &str = "tallygate_warnings_total";
#[cfg(feature = "config")]
const LOST_POLICIES: &str = "tallygate_lost_policies_total";
const WAITING_CALLS: &str = "tallygate_waiting_calls";
const WAITS_REFUSED: &str = "tallygate_waits_refused_total";

static METADATA: Metadata<'static> = Metadata::new("tallygate", Level::INFO, Some(module_path!()));

/// All tallies in this process, over all limiters.
pub(super) static TALLIES: Total = Total::new("tallygate_tallies");

/// All overrides that this process knows of, over all limiters.
pub(super) static OVERRIDES: Total = Total::new("tallygate_overrides");

/// All files that are watched and not in force as they are now, over all limiters.
#[cfg(feature = "config")]
pub(super) static UNAPPLIED_FILES: Total = Total::new("tallygate_unapplied_files");

/// A number of things in this process.
pub(crate) struct Total {
    name: &'static str,
    number: AtomicUsize,
}

/// The keys of a policy's metrics. Each is made once, so that counting a decision allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct PolicyMetrics {
    rules: usize,
    seconds: OnceLock<Key>,
    concurrent_calls: OnceLock<Key>,
    waiting_calls: OnceLock<Key>,
    cached_denials: OnceLock<Key>,
    pub(super) prefetch: PrefetchMetrics,
    unavailable: OnceLock<Key>,
    unidentified: OnceLock<Key>,
    by_backend: DecisionKeys,
    /// Empty before the first outage in which this process decides.
    by_standby: OnceLock<Box<DecisionKeys>>,
}

/// The keys of the decisions of the backend, or of the standby.
#[derive(Debug, Default)]
struct DecisionKeys {
    allowed: OnceLock<Key>,
    banned: OnceLock<Key>,
    /// Denials by rule. An override may turn a rule of duplicates into another rule.
    limited: Box<[OnceLock<Key>]>,
    duplicate: Box<[OnceLock<Key>]>,
    concurrency: Box<[OnceLock<Key>]>,
}

/// The labels of a decision.
#[derive(Clone, Copy)]
pub(super) struct Labels<'a> {
    pub(super) outcome: &'static str,
    /// The rule, if it was a rule's.
    pub(super) rule: Option<ObservedRule<'a>>,
    pub(super) decided_by: &'static str,
}

impl PolicyMetrics {
    pub(crate) fn new(rules: usize) -> Self {
        Self { rules, by_backend: DecisionKeys::new(rules), ..Self::default() }
    }

    /// Counts a decision of the policy with these rules, and records how long it took.
    pub(super) fn record(&self, policy: &str, rules: &[Rule], labels: Labels<'_>, took: Duration) {
        match self.decision(labels).filter(|_| labels.is_of(rules)) {
            Some(known) => count(known.get_or_init(|| labels.key(policy)), 1),
            None => count(&labels.key(policy), 1),
        }
        let seconds = self.seconds.get_or_init(|| key_of_policy(SECONDS, policy));
        tell(|| with_recorder(|recorder| recorder.register_histogram(seconds, &METADATA)).record(took));
    }

    /// Counts a denial that the cache has answered in place of Redis. As a decision, it is counted like any other.
    pub(super) fn count_cached_denial(&self, policy: &str) {
        count(self.cached_denials.get_or_init(|| key_of_policy(CACHED_DENIALS, policy)), 1);
    }

    /// Adds to the number of concurrent calls.
    pub(super) fn add_concurrent_calls(&self, policy: &str, calls: f64) {
        let key = self.concurrent_calls.get_or_init(|| key_of_policy(CONCURRENT_CALLS, policy));
        tell(|| with_recorder(|recorder| recorder.register_gauge(key, &METADATA)).increment(calls));
    }

    /// Adds a caller that waits for admission, until what is returned is dropped.
    pub(super) fn waiting(&self, policy: &str) -> WaitingCall {
        // The counters begin at 0, so that a rate shows the first refusal.
        if self.waiting_calls.get().is_none() {
            for reason in WaitRefusal::ALL {
                add_refused_waits(policy, reason, 0);
            }
        }
        let key = self.waiting_calls.get_or_init(|| key_of_policy(WAITING_CALLS, policy));
        let gauge = tell(|| {
            let gauge = with_recorder(|recorder| recorder.register_gauge(key, &METADATA));
            gauge.increment(1.0);
            gauge
        });
        WaitingCall(gauge)
    }

    /// The key of a decision. Those that are rare have none.
    fn decision(&self, labels: Labels<'_>) -> Option<&OnceLock<Key>> {
        match labels.decided_by {
            "backend" => self.by_backend.get(labels),
            "standby" => self.by_standby.get_or_init(|| Box::new(DecisionKeys::new(self.rules))).get(labels),
            _ if labels.outcome == "unidentified" => Some(&self.unidentified),
            _ => (labels.outcome == "unavailable").then_some(&self.unavailable),
        }
    }
}

/// A caller that waits for admission.
pub(super) struct WaitingCall(Option<Gauge>);

impl Drop for WaitingCall {
    fn drop(&mut self) {
        if let Some(gauge) = &self.0 {
            tell(|| gauge.decrement(1.0));
        }
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
            // An override may have more rules than the policy.
            "duplicate" => self.duplicate.get(labels.rule?.position),
            "limited" => self.limited.get(labels.rule?.position),
            "concurrency" => self.concurrency.get(labels.rule?.position),
            // Limits in shadow are tried out: they need not be fast.
            _ => None,
        }
    }
}

impl Labels<'_> {
    /// Whether they name the rule of that position as the policy itself does. One that an override puts there may have another
    /// name.
    fn is_of(self, rules: &[Rule]) -> bool {
        let own = |rule: ObservedRule<'_>| rules.get(rule.position).is_some_and(|own| own.name() == rule.name);
        self.rule.is_none_or(own)
    }

    fn key(self, policy: &str) -> Key {
        let rule = self.rule.map_or_else(|| "none".to_owned(), ObservedRule::label);
        let labels = [("policy", policy), ("rule", &rule), ("outcome", self.outcome), ("decided_by", self.decided_by)];
        Key::from_parts(DECISIONS, labels.map(|(name, value)| label(name, value)).to_vec())
    }
}

/// Counts calls that are denied at once although they may wait.
pub(super) fn add_refused_waits(policy: &str, reason: WaitRefusal, number: u64) {
    count(&Key::from_parts(WAITS_REFUSED, vec![label("policy", policy), label("reason", reason.as_str())]), number);
}

/// Counts a subject that has come near the limit of this rule.
pub(super) fn count_warning(policy: &str, rule: ObservedRule<'_>) {
    let labels = vec![label("policy", policy), label("rule", &rule.label())];
    count(&Key::from_parts(WARNINGS, labels), 1);
}

/// Shows the metrics of files before there is anything to count.
#[cfg(feature = "config")]
pub(super) fn begin_metrics_of_files() {
    count_lost_policies(0);
    tell(|| gauge!(UNAPPLIED_FILES.name).increment(0.0));
}

/// Counts policies that a file no longer has.
#[cfg(feature = "config")]
pub(super) fn count_lost_policies(number: usize) {
    count(&Key::from_static_name(LOST_POLICIES), number as u64);
}

fn count(key: &Key, number: u64) {
    tell(|| with_recorder(|recorder| recorder.register_counter(key, &METADATA)).increment(number));
}

/// Tells the recorder something, and before the first time what there is. `None` as of [`recorder::tell`].
fn tell<T>(event: impl FnOnce() -> T) -> Option<T> {
    recorder::tell(|| {
        describe();
        event()
    })
}

fn label(name: &'static str, value: &str) -> Label {
    Label::new(name, value.to_owned())
}

fn key_of_policy(name: &'static str, policy: &str) -> Key {
    Key::from_parts(name, vec![label("policy", policy)])
}

impl Total {
    const fn new(name: &'static str) -> Self {
        Self { name, number: AtomicUsize::new(0) }
    }

    /// Sets the share of one gauge. Returns whether that changes the number.
    pub(super) fn count(&self, counted: &mut usize, number: usize) -> bool {
        let before = std::mem::replace(counted, number);
        if number != before {
            self.number.fetch_add(number.wrapping_sub(before), Ordering::SeqCst);
        }
        number != before
    }

    /// Shows the number as it is now.
    #[allow(clippy::cast_precision_loss, reason = "a gauge is a float, and there are far less than 2^53 of anything")]
    pub(super) fn show(&self) {
        tell(|| {
            let gauge = gauge!(self.name);
            // Of two threads, the one that shows last shows the latest number.
            loop {
                let number = self.number.load(Ordering::SeqCst);
                gauge.set(number as f64);
                if self.number.load(Ordering::SeqCst) == number {
                    break;
                }
            }
        });
    }
}

/// Gives the recorder the descriptions, once, with the first metric: the program installs its recorder before it
/// serves.
fn describe() {
    static DESCRIBED: ReportedOnce = ReportedOnce::new();
    if DESCRIBED.is_first() {
        describe_counter!(DECISIONS, Unit::Count, "Decisions by policy, rule that denied, outcome and who decided.");
        describe_histogram!(SECONDS, Unit::Seconds, "The time that a decision took, waiting for admission included.");
        describe_counter!(CACHED_DENIALS, Unit::Count, "Denials that this process answered from its cache.");
        describe_gauge!(
            CONCURRENT_CALLS,
            Unit::Count,
            "Concurrent calls in this process that a concurrency limit counts."
        );
        describe_gauge!(WAITING_CALLS, Unit::Count, "Calls in this process that wait for admission.");
        describe_counter!(
            WAITS_REFUSED,
            Unit::Count,
            "Calls that were denied at once although they may wait, by reason."
        );
        describe_counter!(WARNINGS, Unit::Count, "Subjects that came near a limit, by policy and rule.");
        describe_gauge!(TALLIES.name, Unit::Count, "Tallies in the memory of this process.");
        describe_gauge!(OVERRIDES.name, Unit::Count, "Overrides of rules that this process knows of.");
        #[cfg(feature = "config")]
        {
            describe_counter!(LOST_POLICIES, Unit::Count, "Policies that left the file of limits.");
            describe_gauge!(
                UNAPPLIED_FILES.name,
                Unit::Count,
                "Files of limits that are not in force as they are now."
            );
        }
    }
}
