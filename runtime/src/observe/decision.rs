//! One decision, from its start to its outcome.

use tallygate_rules::Rule;

use super::metrics::{self, DecisionStart, GaugedCall, PolicyMetrics};
use super::span::{self, DecisionSpan};
use super::terms::{ChargeChange, Labels, ObservedRule, PrefetchUse, WaitRefusal};
use super::{log, opaque_debug};
use crate::error::{BackendError, BackendErrorKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A call that runs if it is admitted.
    Call,
    /// A call that always runs.
    Shadow,
    /// A call that is decided once more by a rule in shadow. Only a denial is reported.
    Trial,
    /// A check that counts nothing and is not reported.
    Peek,
}

/// The parts of a policy that reports need.
#[derive(Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) policy: &'a str,
    pub(crate) rules: &'a [Rule],
    pub(crate) metrics: &'a PolicyMetrics,
}

impl Observed<'_> {
    /// Counts a denial that the cache has answered.
    #[inline]
    pub(crate) fn cached_denial(self) {
        self.metrics.count_cached_denial(self.policy);
    }

    /// Counts a decision by units that were taken ahead.
    #[inline]
    pub(crate) fn decided_ahead(self) {
        self.metrics.count_ahead(self.policy);
    }

    /// Counts units that were taken ahead, by what happened to them.
    pub(crate) fn prefetched(self, used: PrefetchUse, units: u64) {
        metrics::count_prefetched(self.policy, used, units);
    }

    /// Counts that units taken ahead have ended before their time.
    pub(crate) fn ended_early(self) {
        metrics::count_early_end(self.policy);
    }

    /// Counts what calls are charged in a unit.
    pub(crate) fn charged(self, unit: &str, change: ChargeChange, amount: u64) {
        self.metrics.count_charge(self.policy, self.rules, unit, change, amount);
    }

    /// Counts a pause by the field of the answer that asked for it.
    pub(crate) fn paused(self, field: Option<&str>) {
        metrics::count_pause(self.policy, field);
    }

    /// Reports that a concurrent call is running, until the returned value is dropped.
    #[inline]
    pub(crate) fn concurrent_call(self) -> GaugedCall {
        self.metrics.concurrent_call(self.policy)
    }

    /// Reports that a caller waits for admission, until the returned value is dropped.
    pub(crate) fn waiting(self) -> GaugedCall {
        self.metrics.waiting(self.policy)
    }

    /// Counts a call that is denied at once although it may wait.
    pub(crate) fn wait_refused(self, reason: WaitRefusal) {
        metrics::add_refused_waits(self.policy, reason, 1);
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum DecisionOutcome<'a> {
    Allowed,
    /// The kind of the rejection, and the rule if a rule denied.
    Denied {
        kind: &'static str,
        rule: Option<ObservedRule<'a>>,
    },
    Undecided(&'a BackendError),
}

pub(crate) struct Observation {
    start: DecisionStart,
    span: DecisionSpan,
}

impl Observation {
    #[inline]
    pub(crate) fn start(policy: &str, purpose: Purpose) -> Self {
        Self {
            start: DecisionStart::now(),
            span: if matches!(purpose, Purpose::Peek | Purpose::Trial) {
                DecisionSpan::none()
            } else {
                DecisionSpan::begin(policy)
            },
        }
    }

    /// Runs a part of the decision inside its span.
    #[inline]
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        self.span.within(work)
    }

    /// Returns whether anything would see a report on a decision for this purpose.
    #[inline]
    pub(crate) fn is_heard(purpose: Purpose) -> bool {
        let is_heard = metrics::IS_ON || span::IS_ON || log::is_heard();
        is_heard && purpose != Purpose::Peek
    }

    /// Reports the outcome of a decision for this purpose, and who decided.
    pub(crate) fn finish(
        &self,
        purpose: Purpose,
        observed: Observed<'_>,
        outcome: DecisionOutcome<'_>,
        decided_by: &'static str,
    ) {
        let is_silent = purpose == Purpose::Trial && !matches!(outcome, DecisionOutcome::Denied { .. });
        if is_silent || !Self::is_heard(purpose) {
            return;
        }
        let (label, rule) = outcome.label(purpose);
        self.span.record(label, rule, decided_by);
        let labels = Labels { outcome: label, rule, decided_by };
        observed.metrics.record(observed.policy, observed.rules, labels, &self.start);
        self.within(|| match outcome {
            DecisionOutcome::Allowed => {}
            DecisionOutcome::Denied { kind, rule } if matches!(purpose, Purpose::Shadow | Purpose::Trial) => {
                log::denied_in_shadow(observed.policy, kind, rule, decided_by);
            }
            DecisionOutcome::Denied { kind, rule } => log::denied(observed.policy, kind, rule, decided_by),
            DecisionOutcome::Undecided(error) => log::undecided(observed.policy, label_of(error), error),
        });
    }
}

impl<'a> DecisionOutcome<'a> {
    /// Returns the outcome as one word, and the rule.
    fn label(self, purpose: Purpose) -> (&'static str, Option<ObservedRule<'a>>) {
        match self {
            Self::Allowed => ("allowed", None),
            Self::Denied { rule, .. } if matches!(purpose, Purpose::Shadow | Purpose::Trial) => ("shadow", rule),
            Self::Denied { kind, rule } => (kind, rule),
            Self::Undecided(error) => (label_of(error), None),
        }
    }
}

opaque_debug!(Observation);

/// Returns the outcome of an undecided call as one word. A call that lacks a value is no outage.
fn label_of(error: &BackendError) -> &'static str {
    match error.kind() {
        BackendErrorKind::Unidentified => "unidentified",
        _ => "unavailable",
    }
}
