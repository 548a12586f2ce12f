//! What a store answers to a call, to a ping and to a step of a scan.

use std::fmt;
use std::sync::Arc;

use crate::algorithm::Quota;
use crate::call::{Call, Lease, OwnedCall};
use crate::decision::{AdmittedAt, DecidedBy, Decision, Denial, DenialCause, Permit, Report, RuleStatus, Wait};
use crate::error::BackendError;
use crate::observe::GaugedCall;
use crate::policy::{Policy, RuleGroup};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    /// The state of every rule afterwards, in the order of the policy; empty unless asked for.
    pub(crate) report: Report,
    /// The time of the decision, by the store's clock.
    pub(crate) at: AdmittedAt,
    /// Only for a part of a call: the time after which its rules would not admit the call any more.
    pub(crate) lapse: Wait,
}

impl Answer {
    pub(crate) fn new(outcome: Outcome, report: Report, at_us: u64) -> Self {
        Self { outcome, report, at: AdmittedAt::Once(at_us), lapse: Wait::NEVER }
    }
}

/// The answer to a call, with what the layers have added to it.
pub(crate) struct LayeredAnswer {
    pub(crate) answer: Answer,
    /// The leases that the call has taken. They are given back on drop.
    pub(crate) lease: Option<Lease>,
    pub(crate) decided_by: DecidedBy,
    /// The part of the policy by which the standby has decided; `None` if the whole policy has.
    pub(crate) part: Option<Policy>,
}

impl From<Answer> for LayeredAnswer {
    #[inline]
    fn from(answer: Answer) -> Self {
        Self { answer, lease: None, decided_by: DecidedBy::Backend, part: None }
    }
}

impl LayeredAnswer {
    /// The answer of tallies in this process, with the leases that the call has taken there.
    #[inline]
    pub(crate) fn with_lease_here(
        answer: Answer,
        call: Call<'_>,
        holder: impl FnOnce() -> Arc<dyn LeaseHolder>,
    ) -> Self {
        let is_admitted = answer.outcome == Outcome::Admitted;
        let leases = if is_admitted { call.leases() } else { None };
        let lease = leases.map(|leases| -> Lease {
            let (holder, call) = (holder(), OwnedCall::new(leases));
            Box::new(LeaseHere { holder, call, _counted: leases.policy.observed().concurrent_call() })
        });
        Self { lease, ..Self::from(answer) }
    }
}

/// Holds the leases of calls in this process.
pub(crate) trait LeaseHolder: Send + Sync {
    /// Gives the leases of a call back, and wakes a caller that waits for one.
    fn take_back(&self, leases: Call<'_>);
}

/// The leases of a call in this process. They are given back on drop.
struct LeaseHere {
    holder: Arc<dyn LeaseHolder>,
    /// The part of the call that has taken the leases.
    call: OwnedCall,
    _counted: GaugedCall,
}

impl Drop for LeaseHere {
    fn drop(&mut self) {
        self.holder.take_back(self.call.as_call());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Admitted,
    /// `rule` is the position of the rule to report, and `retry_after` the time until the same call would be admitted.
    Denied {
        rule: u32,
        retry_after: Wait,
    },
    /// The main subject is paused, for as long as the wait says. The rules were not asked.
    Paused {
        retry_after: Wait,
    },
    /// The pause of the main subject is over, and one call at a time is tried. The wait is for the place of the one that has it,
    /// which may be free before: [`Wait::NONE`] if it is. The rules were not asked.
    Probing {
        retry_after: Wait,
    },
    /// A subject is banned. The wait is for the end of the ban or for the rules, whichever takes longer.
    Banned {
        retry_after: Wait,
    },
}

impl Outcome {
    #[inline]
    pub(crate) fn denied(rule: usize, retry_after: Wait) -> Self {
        // A policy has far fewer rules than `u32::MAX`.
        Self::Denied { rule: u32::try_from(rule).unwrap_or(u32::MAX), retry_after }
    }

    /// The outcome of a call if a rule in force, in a unit that the call pays, has a count of 0; `None` for any other.
    pub(crate) fn closed(policy: &Policy, pays: impl Fn(usize, &RuleGroup) -> bool) -> Option<Self> {
        let rules = policy
            .groups()
            .iter()
            .enumerate()
            .flat_map(|(at, group)| group.rules.iter().map(move |rule| (at, group, rule)));
        let rule = { rules }.position(|(at, group, rule)| rule.count() == 0 && pays(at, group))?;
        Some(Self::denied(rule, Wait::NEVER).with_position(policy))
    }

    pub(crate) fn wait(self) -> Wait {
        match self {
            Self::Admitted => Wait::NONE,
            Self::Denied { retry_after, .. }
            | Self::Banned { retry_after }
            | Self::Paused { retry_after }
            | Self::Probing { retry_after } => retry_after,
        }
    }

    /// Whether a pause is in the way of the call, so that the rules were not asked.
    pub(crate) fn is_by_pause(self) -> bool {
        matches!(self, Self::Paused { .. } | Self::Probing { .. })
    }

    /// Returns the decision on a call that asked only for the outcome.
    pub(crate) fn decision(self, call: Call<'_>, decided_by: DecidedBy) -> Decision {
        let denied = |cause, wait| Decision::Denied(Denial::new(call, cause, wait, decided_by));
        match self {
            Self::Admitted => Decision::Allowed(Permit::plain(decided_by)),
            Self::Denied { rule, retry_after } => denied(DenialCause::rule(rule), retry_after),
            Self::Banned { retry_after } => denied(DenialCause::Ban, retry_after),
            Self::Paused { retry_after } => denied(DenialCause::Pause, retry_after),
            Self::Probing { retry_after } => denied(DenialCause::Probe, retry_after),
        }
    }

    /// Turns the place of the denying rule into its position.
    #[inline]
    pub(crate) fn with_position(self, policy: &Policy) -> Self {
        match self {
            Self::Denied { rule, retry_after } => Self::denied(policy.position(rule as usize), retry_after),
            outcome => outcome,
        }
    }
}

/// Returns the report on a policy's rules. `quotas` are those of the rules from the place `first` on, in the order of
/// the groups. A rule whose count varies by call is left out: the call did not give its count.
pub(crate) fn report(policy: &Policy, first: usize, quotas: Vec<Quota>) -> Report {
    let rules = policy.rules();
    let mut statuses = Vec::with_capacity(quotas.len());
    for (place, quota) in (first..).zip(quotas) {
        let position = policy.position(place);
        if let Some(rule) = rules.get(position).filter(|rule| !rule.is_varying()) {
            statuses.push(RuleStatus::new(position, rule.clone(), quota));
        }
    }
    Report::from(statuses)
}

/// The share of subjects whose calls can be decided, as [`Limiter::ping`](crate::Limiter::ping) has found out. In a
/// cluster, it is less than 1 while masters are away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    ready: u16,
    all: u16,
    error: Option<BackendError>,
}

impl Readiness {
    pub(crate) const COMPLETE: Self = Self { ready: 1, all: 1, error: None };

    /// Returns the readiness of `ready` slots out of `all`.
    ///
    /// # Errors
    ///
    /// The given error, if no slot is ready.
    pub(crate) fn of_slots(ready: u16, all: u16, error: Option<BackendError>) -> Result<Self, BackendError> {
        match error {
            Some(error) if ready == 0 => Err(error),
            error => Ok(Self { ready, all, error }),
        }
    }

    /// Returns whether calls of all subjects can be decided.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.ready == self.all
    }

    /// Returns the share of the subjects whose calls can be decided: 1.0 is all of them.
    #[must_use]
    pub fn share(&self) -> f64 {
        f64::from(self.ready) / f64::from(self.all)
    }

    /// Returns why calls of other subjects cannot be decided; `None` if all can be decided.
    #[must_use]
    pub fn error(&self) -> Option<&BackendError> {
        self.error.as_ref()
    }
}

/// Like `calls of 67 % of the subjects can be decided`.
impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_complete() {
            return f.write_str("all calls can be decided");
        }
        // Rounded down, so it is never 100.
        let percent = u32::from(self.ready) * 100 / u32::from(self.all.max(1));
        write!(f, "calls of {percent} % of the subjects can be decided")?;
        self.error.iter().try_for_each(|error| write!(f, ": {error}"))
    }
}

/// The result of one step of a scan.
#[cfg(feature = "admin")]
pub(crate) struct ScanStep {
    /// Each subject as it stands in keys, behind the index of its rule group in the list that is scanned.
    pub(crate) subjects: Vec<(usize, String)>,
    /// About how much of the scan is done, from 0 to 1.
    pub(crate) progress: f64,
}
