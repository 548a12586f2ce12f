//! What the log, the metrics and the spans tell of decisions: policy, rule and kind, and never the subject.

#[cfg(feature = "metrics")]
pub(crate) mod meters;

#[cfg(feature = "redis")]
use tracing::warn;
use tracing::{debug, info};

use crate::{Decision, Denial, Kind, Outage, Policy};

/// The target of all events.
const TARGET: &str = "tallygate";

/// What a decision is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A call, which goes on if it is admitted.
    Call,
    /// A call that goes on whatever is decided.
    Shadow,
    /// Nothing but to know, which is no decision to tell of.
    Look,
}

/// Watches one decision being made.
pub(crate) struct Watch {
    purpose: Purpose,
    #[cfg(feature = "metrics")]
    started: std::time::Instant,
    #[cfg(feature = "tracing-spans")]
    span: tracing::Span,
}

impl Watch {
    #[cfg_attr(not(feature = "tracing-spans"), allow(unused_variables, reason = "only a span says so at once"))]
    pub(crate) fn start(policy: &Policy, purpose: Purpose) -> Self {
        Self {
            purpose,
            #[cfg(feature = "metrics")]
            started: std::time::Instant::now(),
            #[cfg(feature = "tracing-spans")]
            span: if purpose == Purpose::Look { tracing::Span::none() } else { decide_span(policy) },
        }
    }

    /// Does a part of the decision's work.
    #[cfg_attr(not(feature = "tracing-spans"), allow(clippy::unused_self, reason = "there is no span to enter"))]
    #[inline]
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing-spans")]
        let _entered = self.span.enter();
        work()
    }

    /// Tells what was decided.
    pub(crate) fn tell(&self, policy: &Policy, decided: &Result<Decision, Outage>) {
        if self.purpose == Purpose::Look {
            return;
        }
        let shadow = self.purpose == Purpose::Shadow;
        #[cfg(any(feature = "metrics", feature = "tracing-spans"))]
        let (outcome, rule) = outcome(decided, shadow);
        #[cfg(feature = "tracing-spans")]
        {
            self.span.record("outcome", tracing::field::display(outcome));
            rule.inspect(|rule| _ = self.span.record("rule", rule));
        }
        #[cfg(feature = "metrics")]
        meters::decided(policy, outcome, rule, self.started.elapsed());
        self.within(|| match decided {
            Ok(Decision::Allowed(_)) => {}
            Ok(Decision::Denied(denial)) => denied(policy, denial, shadow),
            Err(outage) => undecided(policy, outage),
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

fn denied(policy: &Policy, denial: &Denial, shadow: bool) {
    let (policy, kind, rule) = (policy.name(), denial.kind(), denial.rule().map(|rule| rule.index()));
    // Whoever abuses a function chooses how often this is told, so it is never told loudly.
    if shadow {
        debug!(target: TARGET, policy, rule, %kind, "denied in shadow: the call goes on");
    } else {
        debug!(target: TARGET, policy, rule, %kind, "denied");
    }
}

/// Tells that the hits of a call stay counted, though they were to be taken back.
pub(crate) fn unrefunded(policy: &str, outage: &Outage) {
    debug!(target: TARGET, policy, %outage, "a permit could not be given back and stays counted");
}

#[cfg(any(feature = "metrics", feature = "tracing-spans"))]
fn outcome(decided: &Result<Decision, Outage>, shadow: bool) -> (Outcome, Option<usize>) {
    match decided {
        Ok(Decision::Allowed(_)) => (Outcome::Allowed, None),
        Ok(Decision::Denied(denial)) => {
            let outcome = if shadow { Outcome::Shadow } else { Outcome::Rejected(denial.kind()) };
            (outcome, denial.rule().map(|rule| rule.index()))
        }
        Err(_) => (Outcome::Rejected(Kind::Unavailable), None),
    }
}

/// What became of a call, in one word.
#[cfg(any(feature = "metrics", feature = "tracing-spans"))]
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Allowed,
    Rejected(Kind),
    /// Denied, but it goes on.
    Shadow,
}

#[cfg(any(feature = "metrics", feature = "tracing-spans"))]
impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Allowed => f.write_str("allowed"),
            Self::Rejected(kind) => kind.fmt(f),
            Self::Shadow => f.write_str("shadow"),
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
