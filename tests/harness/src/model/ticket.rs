//! What it takes to refund an admitted call, or to settle it.

use std::fmt;

use super::{Costs, Plan};

/// What it takes to refund an admitted call, or to settle it.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub(super) plan: Plan,
    pub(super) subjects: [usize; 3],
    pub(super) costs: Costs,
    pub(super) is_peek: bool,
    pub(super) at: u128,
    /// The number of the call.
    pub(super) number: u64,
}

impl Ticket {
    /// Returns the costs of the call.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.costs
    }

    /// Returns whether the call was a peek, which has counted nothing and cannot be settled.
    #[must_use]
    pub fn is_peek(&self) -> bool {
        self.is_peek
    }

    /// Returns the subjects whose counts the call has changed.
    #[must_use]
    pub fn counted_subjects(&self) -> Vec<usize> {
        let counting = self.plan.rules().iter().filter(|(_, rule)| rule.lease().is_none());
        counting.map(|(subject, _)| *subject).collect()
    }

    /// Returns whether rules of the call count units beside calls.
    #[must_use]
    pub fn counts_units(&self) -> bool {
        self.plan.rules().iter().any(|(_, rule)| rule.unit().is_some())
    }

    /// Returns whether the call may be settled in calls.
    #[must_use]
    pub fn is_paid_in_calls(&self) -> bool {
        self.plan.is_paid_in_calls()
    }

    /// Returns the smallest count of the rules that count that unit, if there are any; `None` stands for calls.
    #[must_use]
    pub fn least_count(&self, unit: Option<&str>) -> Option<u64> {
        let counting = self.plan.rules().iter().filter(|(_, rule)| rule.unit() == unit);
        counting.map(|(_, rule)| rule.count()).min()
    }

    /// Returns whether the call has a lease, and so runs until it ends.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.costs.calls > 0 && self.plan.rules().iter().any(|(_, rule)| rule.lease().is_some())
    }

    /// Returns the subjects of the call.
    #[must_use]
    pub fn subjects(&self) -> [usize; 3] {
        self.subjects
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subjects, costs, at, .. } = self;
        write!(f, "{subjects:?}, {costs:?}, of {at} µs")
    }
}
