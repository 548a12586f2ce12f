//! The answer to one call: a permit, or a denial.

mod denial;
mod kind;
mod permit;
mod quota;
mod rejection;
mod rounded_up;
mod rule_status;

pub use self::denial::{Denial, LimitingRule};
pub use self::kind::RejectionKind;
pub use self::permit::Permit;
pub(crate) use self::permit::{Charge, RefundTicket, Refunded, Refunder};
pub(crate) use self::quota::Quota;
pub use self::rejection::{FromRejection, Rejection};
pub(crate) use self::rounded_up::RoundedUp;
pub use self::rule_status::RuleStatus;

/// The answer to one call.
#[derive(Debug)]
#[must_use = "a denied call must not go on"]
pub enum Decision {
    /// Every rule admits the call and has counted it.
    Allowed(Permit),
    /// A rule or a ban denies the call; no rule has counted it.
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

    /// Returns where every rule stands after this decision, if [`Check::report`](crate::Check::report) asked for it;
    /// else nothing.
    #[must_use]
    pub fn report(&self) -> &[RuleStatus] {
        match self {
            Self::Allowed(permit) => permit.report(),
            Self::Denied(denial) => denial.report(),
        }
    }
}
