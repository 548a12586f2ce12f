//! What the log, the metrics and the spans tell of decisions: policy, rule and kind, and never the subject.

#[cfg(feature = "metrics")]
pub(crate) mod meters;

#[cfg(feature = "redis")]
use tracing::warn;
use tracing::{debug, info};

use crate::{Decision, Denial, Kind, Outage, Policy};

/// The target of all events.
const TARGET: &str = "tallygate";

/// Watches one decision being made.
pub(crate) struct Watch<'a> {
    policy: &'a Policy,
    /// Whether there is anything to tell. A look is no decision.
    is_told: bool,
    #[cfg(feature = "metrics")]
    started: std::time::Instant,
    #[cfg(feature = "tracing-spans")]
    span: tracing::Span,
}

impl<'a> Watch<'a> {
    pub(crate) fn start(policy: &'a Policy, is_told: bool) -> Self {
        Self {
            policy,
            is_told,
            #[cfg(feature = "metrics")]
            started: std::time::Instant::now(),
            #[cfg(feature = "tracing-spans")]
            span: if is_told { decide_span(policy) } else { tracing::Span::none() },
        }
    }

    /// Does a part of the decision's work.
    #[cfg_attr(not(feature = "tracing-spans"), allow(clippy::unused_self, reason = "there is no span to enter"))]
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing-spans")]
        let _entered = self.span.enter();
        work()
    }

    /// Tells what was decided.
    pub(crate) fn tell(&self, decided: &Result<Decision, Outage>) {
        if !self.is_told {
            return;
        }
        #[cfg(any(feature = "metrics", feature = "tracing-spans"))]
        let (outcome, rule) = outcome(decided);
        #[cfg(feature = "tracing-spans")]
        {
            self.span.record("outcome", tracing::field::display(outcome));
            rule.inspect(|rule| _ = self.span.record("rule", rule));
        }
        #[cfg(feature = "metrics")]
        meters::decided(self.policy, outcome, rule, self.started.elapsed());
        self.within(|| match decided {
            Ok(Decision::Allowed(_)) => {}
            Ok(Decision::Denied(denial)) => denied(self.policy, denial),
            Err(outage) => undecided(self.policy, outage),
        });
    }
}

#[cfg(feature = "tracing-spans")]
fn decide_span(policy: &Policy) -> tracing::Span {
    let (policy, empty) = (policy.name(), tracing::field::Empty);
    tracing::debug_span!(target: TARGET, "decide", policy, outcome = empty, rule = empty)
}

fn undecided(policy: &Policy, outage: &Outage) {
    debug!(target: TARGET, policy = policy.name(), kind = %Kind::Unavailable, %outage, "no decision");
}

fn denied(policy: &Policy, denial: &Denial) {
    let (policy, kind, rule) = (policy.name(), denial.kind(), denial.rule().map(|rule| rule.index()));
    // Whoever abuses a function chooses how often this is told, so it is never told loudly.
    debug!(target: TARGET, policy, rule, %kind, "denied");
}

#[cfg(any(feature = "metrics", feature = "tracing-spans"))]
fn outcome(decided: &Result<Decision, Outage>) -> (Outcome, Option<usize>) {
    match decided {
        Ok(Decision::Allowed(_)) => (Outcome::Allowed, None),
        Ok(Decision::Denied(denial)) => (Outcome::Rejected(denial.kind()), denial.rule().map(|rule| rule.index())),
        Err(_) => (Outcome::Rejected(Kind::Unavailable), None),
    }
}

/// What became of a call, in one word.
#[cfg(any(feature = "metrics", feature = "tracing-spans"))]
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Allowed,
    Rejected(Kind),
}

#[cfg(any(feature = "metrics", feature = "tracing-spans"))]
impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Allowed => f.write_str("allowed"),
            Self::Rejected(kind) => kind.fmt(f),
        }
    }
}

/// Tells that the rules of a policy, or of one of its subjects, were overridden or are their own again.
pub(crate) fn overridden(policy: &str) {
    info!(target: TARGET, policy, "rules were overridden, or an override was cleared");
}

/// Tells of an override that cannot be read.
#[cfg(feature = "redis")]
pub(crate) fn override_ignored(policy: &str, mistake: &str) {
    warn!(target: TARGET, policy, mistake, "an override cannot be read and is ignored; set or clear it again");
}

/// Tells that the overrides cannot be read.
#[cfg(feature = "redis")]
pub(crate) fn overrides_unread(outage: &Outage) {
    warn!(target: TARGET, %outage, "overrides cannot be read; the last known ones stay in force");
}

/// Tells that the overrides are too many to be read.
#[cfg(feature = "redis")]
pub(crate) fn too_many_overrides(most: usize) {
    warn!(target: TARGET, most, "there are too many overrides to read; the last known ones stay in force");
}

/// Counts the tallies of one shard in this process's metrics, for as long as it lives.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    #[cfg(feature = "metrics")]
    counted: usize,
}

impl Tallies {
    /// Says how many tallies there are.
    #[cfg_attr(not(feature = "metrics"), allow(clippy::unused_self, unused_variables, reason = "nobody counts"))]
    pub(crate) fn are(&mut self, tallies: usize) {
        #[cfg(feature = "metrics")]
        meters::tallies(&mut self.counted, tallies);
    }
}

#[cfg(feature = "metrics")]
impl Drop for Tallies {
    fn drop(&mut self) {
        self.are(0);
    }
}
