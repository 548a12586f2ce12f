//! One decision, from its start to its outcome.

#[cfg(feature = "metrics")]
use tallygate_rules::Rule;

use super::log;
#[cfg(feature = "metrics")]
use super::metrics::{Labels, PolicyMetrics};
use super::opaque_debug;
use super::rule::ObservedRule;
#[cfg(feature = "tracing-spans")]
use super::span::DecisionSpan;
use super::wait_refusal::WaitRefusal;
use crate::error::{BackendError, BackendErrorKind};
#[cfg(feature = "metrics")]
use crate::system::Instant;

/// What a decision is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A call that runs if it is admitted.
    Call,
    /// A call that always runs.
    Shadow,
    /// A call that is decided once more, by a rule in shadow: only a denial is reported.
    Trial,
    /// A check that counts nothing, and is not reported.
    Peek,
}

/// What becomes of calls that are taken ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "without metrics nothing is counted"))]
pub(crate) enum PrefetchUse {
    Taken,
    Used,
    GivenBack,
}

#[cfg(feature = "metrics")]
impl PrefetchUse {
    fn as_str(self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Used => "used",
            Self::GivenBack => "given_back",
        }
    }
}

/// The parts of a policy that reports need.
#[derive(Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) policy: &'a str,
    #[cfg(feature = "metrics")]
    pub(crate) rules: &'a [Rule],
    #[cfg(feature = "metrics")]
    pub(crate) metrics: &'a PolicyMetrics,
}

impl Observed<'_> {
    /// Counts a denial from the cache.
    #[cfg_attr(not(feature = "metrics"), allow(clippy::unused_self, reason = "without metrics nothing is counted"))]
    #[inline]
    pub(crate) fn cached_denial(self) {
        #[cfg(feature = "metrics")]
        self.metrics.count_cached_denial(self.policy);
    }

    /// Counts a decision by what was taken ahead.
    #[cfg_attr(not(feature = "metrics"), allow(clippy::unused_self, reason = "without metrics nothing is counted"))]
    #[inline]
    pub(crate) fn decided_ahead(self) {
        #[cfg(feature = "metrics")]
        self.metrics.prefetch.count_decision(self.policy);
    }

    /// Counts what was taken ahead, and what became of it.
    #[cfg_attr(
        not(feature = "metrics"),
        allow(clippy::unused_self, unused_variables, reason = "without metrics nothing is counted")
    )]
    pub(crate) fn prefetched(self, used: PrefetchUse, units: u64) {
        #[cfg(feature = "metrics")]
        self.metrics.prefetch.count_units(self.policy, used.as_str(), units);
    }

    /// Counts that what was taken ahead has ended before its time.
    #[cfg_attr(not(feature = "metrics"), allow(clippy::unused_self, reason = "without metrics nothing is counted"))]
    pub(crate) fn ended_early(self) {
        #[cfg(feature = "metrics")]
        self.metrics.prefetch.count_early_end(self.policy);
    }

    /// Reports that a concurrent call has begun.
    #[cfg_attr(not(feature = "metrics"), allow(clippy::unused_self, reason = "without metrics nothing is counted"))]
    pub(crate) fn lease_taken(self) {
        #[cfg(feature = "metrics")]
        self.metrics.add_concurrent_calls(self.policy, 1.0);
    }

    /// Reports that a caller waits for admission, until what is returned is dropped.
    #[cfg_attr(not(feature = "metrics"), allow(clippy::unused_self, reason = "without metrics nothing is counted"))]
    pub(crate) fn waiting(self) -> impl Sized + Send {
        #[cfg(feature = "metrics")]
        self.metrics.waiting(self.policy)
    }

    /// Counts a call that is denied at once although it may wait.
    #[cfg_attr(
        not(feature = "metrics"),
        allow(clippy::unused_self, unused_variables, reason = "without metrics nothing is counted")
    )]
    pub(crate) fn wait_refused(self, reason: WaitRefusal) {
        #[cfg(feature = "metrics")]
        super::metrics::add_refused_waits(self.policy, reason, 1);
    }

    /// Reports that a concurrent call has ended.
    #[cfg_attr(not(feature = "metrics"), allow(clippy::unused_self, reason = "without metrics nothing is counted"))]
    pub(crate) fn lease_given_back(self) {
        #[cfg(feature = "metrics")]
        self.metrics.add_concurrent_calls(self.policy, -1.0);
    }
}

/// The outcome of a decision.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DecisionOutcome<'a> {
    Allowed,
    /// The kind of the rejection, and the rule, if a rule denied.
    Denied {
        kind: &'static str,
        rule: Option<ObservedRule<'a>>,
    },
    Undecided(&'a BackendError),
}

/// An observation of one decision while it is made.
pub(crate) struct Observation {
    #[cfg(feature = "metrics")]
    started: Instant,
    #[cfg(feature = "tracing-spans")]
    span: DecisionSpan,
}

impl Observation {
    #[cfg_attr(not(feature = "tracing-spans"), allow(unused_variables, reason = "only a span needs them"))]
    #[inline]
    pub(crate) fn start(policy: &str, purpose: Purpose) -> Self {
        Self {
            #[cfg(feature = "metrics")]
            started: Instant::now(),
            #[cfg(feature = "tracing-spans")]
            span: if matches!(purpose, Purpose::Peek | Purpose::Trial) {
                DecisionSpan::none()
            } else {
                DecisionSpan::begin(policy)
            },
        }
    }

    /// Runs a part of the decision inside its span.
    #[cfg_attr(not(feature = "tracing-spans"), allow(clippy::unused_self, reason = "there is no span to enter"))]
    #[inline]
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing-spans")]
        return self.span.within(work);
        #[cfg(not(feature = "tracing-spans"))]
        work()
    }

    /// Returns whether a report on such a decision would be seen.
    #[inline]
    pub(crate) fn is_heard(purpose: Purpose) -> bool {
        let is_heard = cfg!(any(feature = "metrics", feature = "tracing-spans")) || log::is_heard();
        is_heard && purpose != Purpose::Peek
    }

    /// Reports the outcome of a decision that was made for this, and who decided.
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
        #[cfg(any(feature = "metrics", feature = "tracing-spans"))]
        let (label, rule) = outcome.label(purpose);
        #[cfg(feature = "tracing-spans")]
        self.span.record(label, rule.map(|rule| rule.position), decided_by);
        #[cfg(feature = "metrics")]
        let labels = Labels { outcome: label, rule, decided_by };
        #[cfg(feature = "metrics")]
        observed.metrics.record(observed.policy, observed.rules, labels, self.started.elapsed());
        let position = |rule: Option<ObservedRule<'_>>| rule.map(|rule| rule.position);
        self.within(|| match outcome {
            DecisionOutcome::Allowed => {}
            DecisionOutcome::Denied { kind, rule } if matches!(purpose, Purpose::Shadow | Purpose::Trial) => {
                log::denied_in_shadow(observed.policy, kind, position(rule), decided_by);
            }
            DecisionOutcome::Denied { kind, rule } => log::denied(observed.policy, kind, position(rule), decided_by),
            DecisionOutcome::Undecided(error) => log::undecided(observed.policy, label_of(error), error),
        });
    }
}

#[cfg(any(feature = "metrics", feature = "tracing-spans"))]
impl<'a> DecisionOutcome<'a> {
    /// Returns the outcome in one word, and the rule.
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

/// Returns the outcome of an undecided call in one word. A call that lacks a value is no outage.
fn label_of(error: &BackendError) -> &'static str {
    match error.kind() {
        BackendErrorKind::Unidentified => "unidentified",
        _ => "unavailable",
    }
}
