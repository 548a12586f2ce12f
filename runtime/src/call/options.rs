//! How a call is decided.

use std::time::Duration;

use super::lease::LeaseName;

/// How one call is decided. The same options are handed down from the caller to the store.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct CallOptions {
    /// The weight of the call.
    pub(crate) cost: u64,
    /// Reports where every rule stands.
    pub(crate) report: bool,
    /// The report is for the response to a request, for which a cached denial is enough.
    pub(crate) report_is_optional: bool,
    /// Decides only, and charges nothing.
    pub(crate) peek: bool,
    /// If it is denied, it may be decided again: its denial does not count towards a ban.
    pub(crate) trial: bool,
    /// Issues a permit that can be refunded.
    pub(crate) refundable: bool,
    /// Waits for admission.
    pub(crate) wait: Option<WaitLimit>,
    /// Runs the call whatever is decided.
    pub(crate) shadow: bool,
    /// What its leases are called, where concurrent calls are counted.
    pub(crate) lease: Option<LeaseName>,
}

/// How long a call waits for admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitLimit {
    Within(Duration),
    Unlimited,
}

impl CallOptions {
    /// A plain call of weight 1.
    pub(crate) const PLAIN: Self = Self {
        cost: 1,
        report: false,
        report_is_optional: false,
        peek: false,
        trial: false,
        refundable: false,
        wait: None,
        shadow: false,
        lease: None,
    };
}
