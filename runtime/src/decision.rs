//! The answer to one call: a permit, or a denial.

mod charge;
mod correction;
mod decided_by;
mod denial;
mod meter;
mod metered_call;
mod pause;
mod pausing;
mod permit;
mod rejection;
mod report;
mod returned;

pub(crate) use self::charge::{
    AdmittedAt, Charge, Recount, RecountTicket, Recounter, Recounting, Remainder, report_settlement,
};
pub use self::correction::Correction;
pub use self::decided_by::DecidedBy;
pub(crate) use self::denial::DenialCause;
pub use self::denial::{Denial, LimitingRule, RejectionKind};
pub use self::meter::Meter;
pub use self::metered_call::{MeteredCall, meter, metered, unmetered};
pub use self::pause::PauseStatus;
pub(crate) use self::pause::{Pausable, PauseSource, PauseTicket, Pauser, Pausing, ProbeName, SOURCE_BYTES, SaidPause};
pub use self::permit::Permit;
pub(crate) use self::rejection::Reword;
pub use self::rejection::{Rejection, push_field};
pub(crate) use self::report::Report;
pub use self::report::{RuleStatus, Warning};
pub use self::returned::{Answered, FromRejection, HoldPermit, Holding, hold, hold_any};
pub(crate) use crate::wait::{RoundedUp, Wait};

/// The answer to one call.
#[derive(Debug)]
#[must_use = "a denied call must not go on"]
pub enum Decision {
    /// The call goes on. Every rule admits it and, unless it is a peek, has counted it; or the call is in shadow, or
    /// [nobody](DecidedBy::Nobody) decided it.
    Allowed(Permit),
    /// A rule, a ban or a pause denies the call; no rule has counted it.
    Denied(Denial),
}

impl Decision {
    /// Returns whether the call was admitted.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    /// Returns the permit of an admitted call.
    ///
    /// # Errors
    ///
    /// The denial of any other call.
    pub fn into_result(self) -> Result<Permit, Denial> {
        match self {
            Self::Allowed(permit) => Ok(permit),
            Self::Denied(denial) => Err(denial),
        }
    }

    /// Returns who made this decision: the backend, or what takes its place while Redis is away.
    #[must_use]
    pub fn decided_by(&self) -> DecidedBy {
        match self {
            Self::Allowed(permit) => permit.decided_by(),
            Self::Denied(denial) => denial.decided_by(),
        }
    }

    /// Returns where every rule stands after this decision, if [`Check::report`](crate::Check::report) asked for it;
    /// else nothing.
    #[must_use]
    pub fn report(&self) -> &[RuleStatus] {
        match self {
            Self::Allowed(permit) => permit.report(),
            Self::Denied(denial) => denial.report(),
        }
    }

    /// Returns where the rules in [shadow](crate::Rule::shadow) stand, if this is a [`peek`](crate::Limiter::peek) with
    /// a report; else nothing.
    ///
    /// A rule in shadow counts the calls that the enforced rules admit, and denies nothing. When it admits less than
    /// the cost of a call, the log has a line about that call.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let (limiter, alice, hour) = (Limiter::in_memory(), Subject::of("alice"), Duration::from_secs(3600));
    /// let tried = Rule::sliding_window(2, hour).shadow();
    /// let policy = Policy::builder("export").rule(Rule::sliding_window(5, hour)).rule(tried).build()?;
    /// for _ in 0..3 {
    ///     assert!(limiter.check(&policy, &alice).await?.is_allowed());
    /// }
    /// let peeked = limiter.peek(&policy, &alice).await?;
    /// assert_eq!((peeked.report()[0].remaining(), peeked.shadow_report()[0].remaining()), (2, 0));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn shadow_report(&self) -> &[RuleStatus] {
        match self {
            Self::Allowed(permit) => permit.trials(),
            Self::Denied(denial) => denial.trials(),
        }
    }

    /// Adds the status of each rule in shadow.
    pub(crate) fn with_trials(self, trials: Vec<RuleStatus>) -> Self {
        match self {
            Self::Allowed(permit) => Self::Allowed(permit.with_trials(trials)),
            Self::Denied(denial) => Self::Denied(denial.with_trials(trials)),
        }
    }
}
