//! What it takes to refund an admitted call, or to settle it.

use std::fmt;

use super::Plan;

/// What it takes to refund an admitted call, or to settle it.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub(super) plan: Plan,
    pub(super) subjects: [usize; 3],
    pub(super) cost: u64,
    pub(super) at: u128,
    /// The number of the call.
    pub(super) number: u64,
}

impl Ticket {
    /// Returns the cost of the call.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns whether the call has a lease, and so runs until it ends.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.cost > 0 && self.plan.rules().iter().any(|(_, rule)| rule.lease().is_some())
    }

    /// Returns the subjects of the call.
    #[must_use]
    pub fn subjects(&self) -> [usize; 3] {
        self.subjects
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subjects, cost, at, .. } = self;
        write!(f, "{subjects:?}, cost {cost}, of {at} µs")
    }
}
