//! How much calls need, or have used.

use crate::call::CallOptions;

/// A number of calls, and what they cost together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    pub(super) calls: u64,
    pub(super) cost: u64,
}

impl Demand {
    /// Returns what one call needs.
    pub(super) fn of(options: CallOptions) -> Self {
        let cost = if options.peek { 0 } else { options.cost };
        Self { calls: cost.min(1), cost }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { calls: self.calls.saturating_add(other.calls), cost: self.cost.saturating_add(other.cost) }
    }

    pub(super) fn less(self, other: Self) -> Self {
        Self { calls: self.calls.saturating_sub(other.calls), cost: self.cost.saturating_sub(other.cost) }
    }
}
