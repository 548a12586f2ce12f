//! The options of a call.

use std::time::Duration;

use super::LeaseName;

/// The options of a call, handed down from the caller to the store.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct CallOptions {
    /// As how many calls it counts.
    pub(crate) cost: u64,
    /// Reports where every rule stands.
    pub(crate) report: bool,
    /// The report is for the response to a request, for which a cached denial is enough.
    pub(crate) report_is_optional: bool,
    /// Decides and counts nothing.
    pub(crate) peek: bool,
    /// A denial does not count towards a ban, because the call may be decided again.
    pub(crate) provisional: bool,
    /// Charges the call even beyond the limits, because it has been made.
    pub(crate) late: bool,
    /// Decides the call although its subject may be paused, because that is known already.
    pub(crate) ignores_pause: bool,
    /// Issues a permit that can be refunded.
    pub(crate) refundable: bool,
    /// Waits for admission.
    pub(crate) wait: Option<WaitLimit>,
    /// What the caller asks for: the call runs even if it is denied. An override or a file may say otherwise.
    pub(crate) shadow: bool,
    /// The name of the leases that it takes; `None` if it takes none.
    pub(crate) lease: Option<LeaseName>,
}

/// How long a call waits for admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitLimit {
    Within(Duration),
    Unlimited,
}

impl CallOptions {
    /// Whether the call is denied if its subject is paused.
    pub(crate) fn heeds_pause(self) -> bool {
        !self.late && !self.ignores_pause
    }

    /// A plain call of cost 1.
    pub(crate) const PLAIN: Self = Self {
        cost: 1,
        report: false,
        report_is_optional: false,
        peek: false,
        provisional: false,
        late: false,
        ignores_pause: false,
        refundable: false,
        wait: None,
        shadow: false,
        lease: None,
    };

    /// Whether the call needs more than an outcome, or counts otherwise than a plain call.
    #[inline]
    pub(crate) fn asks_for_more_than_outcome(&self) -> bool {
        self.report || self.peek || self.provisional || self.refundable
    }
}
