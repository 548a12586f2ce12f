//! The metrics of decisions, warnings, tallies and overrides.
//!
//! A recorder is never called while this library holds a lock or initialises something, and never for calls that it
//! makes itself. It may call limited functions, which would wait for the lock, or be counted without end.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use metrics::{
    Gauge, Key, Label, Level, Metadata, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    with_recorder,
};

use tallygate_rules::Rule;

use super::once::ReportedOnce;
use super::terms::{ChargeChange, Labels, ObservedRule, PrefetchUse, WaitRefusal};
use crate::system::Instant;

pub(super) const IS_ON: bool = true;

const DECISIONS: &str = "tallygate_decisions_total";
const SECONDS: &str = "tallygate_decision_seconds";
const CACHED_DENIALS: &str = "tallygate_cached_denials_total";
const CONCURRENT_CALLS: &str = "tallygate_concurrent_calls";
const PAUSES: &str = "tallygate_pauses_total";
const WARNINGS: &str = "tallygate_warnings_total";
const LOST_POLICIES: &str = "tallygate_lost_policies_total";
const WAITING_CALLS: &str = "tallygate_waiting_calls";
const WAITS_REFUSED: &str = "tallygate_waits_refused_total";
const CHARGED_UNITS: &str = "tallygate_charged_units_total";
const AHEAD_DECISIONS: &str = "tallygate_prefetch_decisions_total";
const AHEAD_UNITS: &str = "tallygate_prefetch_units_total";
const AHEAD_EARLY_ENDS: &str = "tallygate_prefetch_early_ends_total";

static METADATA: Metadata<'static> = Metadata::new("tallygate", Level::INFO, Some(module_path!()));

/// All tallies of this process, over all limiters.
pub(super) static TALLIES: Total =
    Total { name: "tallygate_tallies", number: AtomicUsize::new(0), events: &[&REPLACED_SUBJECTS, &DENIED_RETURNS] };

/// Subjects in the memory of this process that others have replaced.
static REPLACED_SUBJECTS: Events = Events::new("tallygate_replaced_subjects_total");

/// Subjects that were denied when they came, by what they or others had left.
static DENIED_RETURNS: Events = Events::new("tallygate_denied_returns_total");

/// All overrides that this process knows, over all limiters.
pub(super) static OVERRIDES: Total = Total::new("tallygate_overrides");

/// All watched files whose present text is not in force, over all limiters.
pub(super) static UNAPPLIED_FILES: Total = Total::new("tallygate_unapplied_files");

pub(crate) struct Total {
    name: &'static str,
    number: AtomicUsize,
    /// What is told together with the number.
    events: &'static [&'static Events],
}

/// Events that happen under a lock, and are told later.
struct Events {
    name: &'static str,
    untold: AtomicU64,
    /// Whether it was told, so that it is there before the first event.
    is_told: AtomicBool,
}

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

    pub(super) fn add_concurrent_calls(&self, policy: &str, calls: f64) {
        let key = self.concurrent_calls.get_or_init(|| key_of_policy(CONCURRENT_CALLS, policy));
        tell(|| with_recorder(|recorder| recorder.register_gauge(key, &METADATA)).increment(calls));
    }

    /// Adds a caller that waits for admission, until the returned value is dropped.
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

pub(super) struct WaitingCall(Option<Gauge>);

impl Drop for WaitingCall {
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
    tell(|| gauge!(UNAPPLIED_FILES.name).increment(0.0));
}

pub(super) fn count_lost_policies(number: usize) {
    count(&Key::from_static_name(LOST_POLICIES), number as u64);
}

fn count(key: &Key, number: u64) {
    tell(|| with_recorder(|recorder| recorder.register_counter(key, &METADATA)).increment(number));
}

thread_local! {
    static IS_TOLD: Cell<bool> = const { Cell::new(false) };
}

/// Calls the recorder, the first time after it was given the descriptions. `None` if this thread is already within such
/// a call.
fn tell<T>(event: impl FnOnce() -> T) -> Option<T> {
    if IS_TOLD.try_with(|is_told| is_told.replace(true)) != Ok(false) {
        return None;
    }
    let _end = TellEnd;
    describe();
    Some(event())
}

/// Ends a call of the recorder, even if the recorder panics.
struct TellEnd;

impl Drop for TellEnd {
    fn drop(&mut self) {
        _ = IS_TOLD.try_with(|is_told| is_told.set(false));
    }
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

impl Total {
    const fn new(name: &'static str) -> Self {
        Self { name, number: AtomicUsize::new(0), events: &[] }
    }

    /// Sets the share of one gauge. Returns whether the number has changed.
    pub(super) fn count(&self, counted: &mut usize, number: usize) -> bool {
        let before = std::mem::replace(counted, number);
        if number != before {
            self.number.fetch_add(number.wrapping_sub(before), Ordering::SeqCst);
        }
        number != before
    }

    #[allow(clippy::cast_precision_loss, reason = "a gauge is a float, and there are far less than 2^53 of anything")]
    pub(super) fn show(&self) {
        tell(|| {
            let gauge = gauge!(self.name);
            // If two threads show the number, the later one shows the latest number.
            loop {
                let number = self.number.load(Ordering::SeqCst);
                gauge.set(number as f64);
                if self.number.load(Ordering::SeqCst) == number {
                    break;
                }
            }
        });
        self.events.iter().for_each(|events| events.show());
    }
}

impl Events {
    const fn new(name: &'static str) -> Self {
        Self { name, untold: AtomicU64::new(0), is_told: AtomicBool::new(false) }
    }

    fn add(&self) {
        self.untold.fetch_add(1, Ordering::Relaxed);
    }

    fn show(&self) {
        let untold = self.untold.swap(0, Ordering::Relaxed);
        if untold == 0 && self.is_told.load(Ordering::Relaxed) {
            return;
        }
        match tell(|| counter!(self.name).increment(untold)) {
            Some(()) => self.is_told.store(true, Ordering::Relaxed),
            None => drop(self.untold.fetch_add(untold, Ordering::Relaxed)),
        }
    }
}

/// Counts a subject that was denied when it came, by what was left of it. It is told with the next change of the tallies.
pub(crate) fn count_denied_return() {
    DENIED_RETURNS.add();
}

/// Gives the recorder the descriptions once, with the first metric: by then, the program has installed its recorder.
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
        describe_counter!(
            CHARGED_UNITS,
            Unit::Count,
            "What calls were charged in units such as tokens, and what settlements added and removed."
        );
        describe_counter!(
            PAUSES,
            Unit::Count,
            "How often the other side, or a program, has asked for a pause, by field."
        );
        describe_counter!(WARNINGS, Unit::Count, "Subjects that came near a limit, by policy and rule.");
        describe_gauge!(TALLIES.name, Unit::Count, "Tallies in the memory of this process.");
        describe_counter!(
            REPLACED_SUBJECTS.name,
            Unit::Count,
            "Subjects in the memory of this process that others have replaced."
        );
        describe_counter!(
            DENIED_RETURNS.name,
            Unit::Count,
            "Subjects that were denied when they came, by what replaced subjects have left."
        );
        describe_gauge!(OVERRIDES.name, Unit::Count, "Overrides of rules that this process knows of.");
        describe_counter!(LOST_POLICIES, Unit::Count, "Policies that left the file of limits.");
        describe_gauge!(UNAPPLIED_FILES.name, Unit::Count, "Files of limits that are not in force as they are now.");
        describe_counter!(
            AHEAD_DECISIONS,
            Unit::Count,
            "Decisions of this process by what it has taken ahead from Redis."
        );
        describe_counter!(AHEAD_UNITS, Unit::Count, "What this process has taken ahead, used of it, and given back.");
        describe_counter!(
            AHEAD_EARLY_ENDS,
            Unit::Count,
            "How often a ban or a reset of this process has ended what was taken ahead."
        );
    }
}

/// Defines a gauge: a number that is part of the metrics of this process as long as the gauge lives.
macro_rules! gauge_type {
    ($(#[$attribute:meta])* $gauge:ident, $number:ident) => {
        $(#[$attribute])*
        #[derive(Debug, Default)]
        pub(crate) struct $gauge {
            counted: usize,
            has_changed: bool,
        }

        impl $gauge {
            /// Sets the number. The metrics show it with the [change](Self::change).
            #[inline]
            pub(crate) fn set(&mut self, number: usize) {
                self.has_changed |= $number.count(&mut self.counted, number);
            }

            /// Returns what has changed since the last such question.
            #[inline]
            pub(crate) fn change(&mut self) -> GaugeChange {
                GaugeChange { total: std::mem::take(&mut self.has_changed).then_some(&$number) }
            }
        }

        impl Drop for $gauge {
            fn drop(&mut self) {
                self.set(0);
                drop(self.change());
            }
        }
    };
}

gauge_type! {
    /// The tallies of one shard.
    TallyGauge, TALLIES
}

impl TallyGauge {
    /// Counts a subject that another has replaced.
    pub(crate) fn count_replaced(&mut self) {
        REPLACED_SUBJECTS.add();
        self.has_changed = true;
    }
}

gauge_type! {
    /// The overrides of one limiter.
    OverrideGauge, OVERRIDES
}
gauge_type! {
    /// Whether the present text of the file that a limiter watches is not in force.
    UnappliedFileGauge, UNAPPLIED_FILES
}

/// A change that is shown when this is dropped. No lock may be held then, because a recorder may call limited
/// functions.
#[must_use]
#[derive(Default)]
pub(crate) struct GaugeChange {
    total: Option<&'static Total>,
}

impl GaugeChange {
    /// Joins two changes of the same gauge.
    pub(crate) fn and(mut self, mut other: Self) -> Self {
        self.total = self.total.take().or(other.total.take());
        self
    }
}

impl Drop for GaugeChange {
    #[inline]
    fn drop(&mut self) {
        if let Some(total) = self.total {
            total.show();
        }
    }
}
