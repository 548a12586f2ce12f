//! Why a call was not admitted.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::{Role, Rule, amount_in_words, format_duration, unit_in_words};

use super::decided_by::DecidedBy;
use super::report::{Report, RuleStatus};
use crate::call::Call;
use crate::observe::opaque_debug;
use crate::policy::Policy;
use crate::wait::{RoundedUp, Wait};

/// Why a call was not admitted: the rule that denies it, and how long until it would be admitted.
///
/// Its text is a sentence that an end user may be shown: it contains neither the policy nor the subject. A text by
/// [`Check::messages`](crate::Check::messages) takes its place.
#[derive(Clone, PartialEq, Eq)]
pub struct Denial {
    policy: Policy,
    cause: DenialCause,
    decided_by: DecidedBy,
    /// Whether the call costs more than the rule ever admits.
    is_too_costly: bool,
    retry_after: Wait,
    report: Report,
    /// The text that takes the place of the usual one.
    pub(super) message: Option<Arc<str>>,
}

/// What denies a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenialCause {
    /// The rule at this position. A `u16`, to keep rejections small.
    Rule(u16),
    Ban,
    Pause,
    /// After a pause, another call is tried.
    Probe,
}

impl DenialCause {
    pub(crate) fn rule(position: u32) -> Self {
        // A policy has far fewer rules than `u16::MAX`.
        Self::Rule(u16::try_from(position).unwrap_or(u16::MAX))
    }
}

impl Denial {
    pub(crate) fn new(call: Call<'_>, cause: DenialCause, retry_after: Wait, decided_by: DecidedBy) -> Self {
        let (policy, report) = (call.policy.clone(), Report::default());
        let mut denial = Self { policy, cause, decided_by, is_too_costly: false, retry_after, report, message: None };
        // A call that costs too much can never be admitted, so its wait is endless.
        denial.is_too_costly = retry_after == Wait::NEVER
            && denial.rule().is_some_and(|limiting| call.cost_for(limiting.position) > limiting.rule.greatest_cost());
        denial
    }

    pub(crate) fn into_report(self) -> Report {
        self.report
    }

    pub(crate) fn with_report(self, report: Report) -> Self {
        Self { report, ..self }
    }

    /// Whether another call is tried after a pause, so that the wait is only a bound.
    pub(crate) fn is_by_probe(&self) -> bool {
        self.cause == DenialCause::Probe
    }

    pub(super) fn trials(&self) -> &[RuleStatus] {
        self.report.trials()
    }

    pub(super) fn with_trials(self, trials: Vec<RuleStatus>) -> Self {
        Self { report: self.report.with_trials(trials), ..self }
    }

    /// Returns who denied the call: the backend, or what takes its place while Redis is away.
    #[must_use]
    pub fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// Returns [`RejectionKind::Duplicate`] for a repeated call, [`RejectionKind::Limited`] for too many calls,
    /// [`RejectionKind::Concurrency`] for too many concurrent calls, [`RejectionKind::Banned`] for a call of a banned
    /// subject, [`RejectionKind::Paused`] for a call of a paused one.
    #[must_use]
    pub fn kind(&self) -> RejectionKind {
        match self.rule().map(|limiting| limiting.rule.role()) {
            None if self.cause == DenialCause::Ban => RejectionKind::Banned,
            None => RejectionKind::Paused,
            Some(Role::Duplicate) => RejectionKind::Duplicate,
            Some(Role::Concurrency) => RejectionKind::Concurrency,
            Some(_) => RejectionKind::Limited,
        }
    }

    /// Returns the policy that denied the call.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the rule that denied the call. If several did, it is the duplicate rule, or else the one with the
    /// longest wait. A ban and a pause have no rule.
    #[must_use]
    pub fn rule(&self) -> Option<LimitingRule<'_>> {
        let DenialCause::Rule(position) = self.cause else { return None };
        let position = usize::from(position);
        let rule = self.policy.rules().get(position)?;
        Some(LimitingRule { position, replaced: self.policy.replaced(position), rule })
    }

    /// Returns how long to wait until the same call would be admitted, if no other calls come in between.
    ///
    /// It is exact to the microsecond. It is the longest wait of all rules that deny the call and of a ban, so a banned
    /// caller may have to wait longer than the ban lasts. For a pause, it is the time until that ends, and the rules may deny
    /// the call after it. Two waits are only bounds: for the one call that is tried after a pause, and for a concurrency limit,
    /// where it is the time until the first lease of the running calls ends. A running call may end before that, and a longer
    /// one renews its lease.
    ///
    /// `None` means that waiting does not help: the call costs more than a rule can admit at once, or a count of 0
    /// closes the limit. Or a token bucket would start anew before it could admit the call, with fewer tokens than the
    /// call costs: see [`TokenBucket`](crate::TokenBucket).
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after.retry_after()
    }

    /// Returns where every rule stands, if [`Check::report`](crate::Check::report) asked for it; else nothing.
    #[must_use]
    pub fn report(&self) -> &[RuleStatus] {
        self.report.rules()
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(message) = &self.message {
            return f.write_str(message);
        }
        let Some(limiting) = self.rule() else {
            if self.kind() == RejectionKind::Paused {
                let wait = self.retry_after().unwrap_or_default();
                return write!(
                    f,
                    "paused: the other side accepts no requests for now; try again in {}",
                    RoundedUp(wait)
                );
            }
            return match self.retry_after() {
                Some(wait) => write!(f, "banned: no requests are admitted; try again in {}", RoundedUp(wait)),
                None => f.write_str("banned: no requests are admitted; waiting does not help"),
            };
        };
        if limiting.rule().is_varying() {
            return f.write_str("this limit has no count for the request, so none is admitted");
        }
        let count = limiting.count();
        if count == 0 {
            return write!(f, "closed: no {} are admitted for now", unit_in_words(limiting.rule()));
        }
        let (unit, most) = (unit_in_words(limiting.rule()), amount_in_words(limiting.rule(), count));
        match (self.kind(), limiting.per()) {
            (RejectionKind::Duplicate, Some(per)) => return self.write_duplicate(f, per),
            (RejectionKind::Concurrency, _) => write!(f, "too many concurrent requests: at most {count}"),
            (_, Some(per)) => {
                let about = if limiting.rule().is_approximate() { "about " } else { "" };
                write!(f, "too many {unit}: at most {about}{most} per {}", format_duration(per))?;
                let at_once = limiting.rule().capacity().filter(|capacity| *capacity != count);
                let at_once = at_once.map(|capacity| amount_in_words(limiting.rule(), capacity));
                at_once.map_or(Ok(()), |capacity| write!(f, ", and {capacity} at once"))
            }
            (_, None) => write!(f, "too many {unit}: at most {most} between two ticks of a schedule"),
        }?;
        match self.retry_after() {
            Some(wait) => write!(f, "; try again in {}", RoundedUp(wait)),
            None if self.is_too_costly => f.write_str("; this request alone exceeds it"),
            None => f.write_str("; waiting does not help"),
        }
    }
}

impl Denial {
    /// The wait may be longer than the window of the duplicate rule, as it is the longest of all rules.
    fn write_duplicate(&self, f: &mut fmt::Formatter<'_>, per: Duration) -> fmt::Result {
        write!(f, "duplicate request: the same one was admitted less than {} ago", format_duration(per))?;
        match self.retry_after() {
            Some(wait) if wait <= per => write!(f, "; try again in {}", RoundedUp(wait)),
            Some(wait) => write!(f, ", and another limit is reached; try again in {}", RoundedUp(wait)),
            None => f.write_str(", and another limit is reached; waiting does not help"),
        }
    }
}

opaque_debug!(Denial, denial => {
    policy: denial.policy.name(),
    kind: denial.kind(),
    rule: denial.rule(),
    retry_after: denial.retry_after()
});

impl std::error::Error for Denial {}

/// The rule that denied a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LimitingRule<'a> {
    position: usize,
    /// The position of the policy's own rule that this one replaces, where an override is in force.
    pub(crate) replaced: Option<usize>,
    rule: &'a Rule,
}

impl<'a> LimitingRule<'a> {
    /// Returns the rule's position in its policy, counted from 0.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the name of the rule, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&'a str> {
        self.rule.name()
    }

    /// Returns the unit that the rule counts; `None` if it counts calls.
    #[must_use]
    pub fn unit(&self) -> Option<&'a str> {
        self.rule.unit()
    }

    /// Returns the greatest weight that the rule admits in its window.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.rule.count()
    }

    /// Returns the length of the rule's window, or `None` for the windows of a schedule and for concurrency.
    #[must_use]
    pub fn per(&self) -> Option<Duration> {
        self.rule.per()
    }

    /// Returns the rule itself.
    #[must_use]
    pub fn rule(&self) -> &'a Rule {
        self.rule
    }
}

/// Like `#1: 10 per 1d as daily`.
impl fmt::Debug for LimitingRule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}: {}", self.position, self.rule)
    }
}

/// The kind of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectionKind {
    /// Too many calls.
    Limited,
    /// The call was made before, within the window of `prevent_duplicate`.
    Duplicate,
    /// Too many concurrent calls.
    Concurrency,
    /// A call of a subject that is banned.
    Banned,
    /// A call of a subject that is [paused](crate::PolicyBuilder::pausable), because the other side said so, or of which another
    /// call is tried after a pause. Then the wait is only a bound.
    Paused,
    /// The call was not decided: the backend did not answer within the deadline, or answered with an error; the memory has
    /// no room for another subject; or the program made the call in a wrong way. The source of the error has the cause.
    Unavailable,
    /// The call lacks a value of its context that the limit counts by and that other calls have, such as the user of a
    /// request.
    Unidentified,
}

impl RejectionKind {
    /// Returns the kind in one word: `limited`, `duplicate`, `concurrency`, `banned`, `paused`, `unavailable` or
    /// `unidentified`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Limited => "limited",
            Self::Duplicate => "duplicate",
            Self::Concurrency => "concurrency",
            Self::Banned => "banned",
            Self::Paused => "paused",
            Self::Unavailable => "unavailable",
            Self::Unidentified => "unidentified",
        }
    }
}

impl fmt::Display for RejectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
