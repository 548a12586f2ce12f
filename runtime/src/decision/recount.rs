//! What an admitted call is counted as afterwards: nothing, where it is refunded; what it has used, where it is settled.

/// What is recounted of a charge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recount {
    /// The index of the group, where only one of several subjects is concerned.
    pub(crate) part: Option<usize>,
    /// The cost of the call from now on.
    pub(crate) used: u64,
}

impl Recount {
    /// The call counts no more.
    pub(crate) const REFUND: Self = Self { part: None, used: 0 };
}

/// The cost of a call: what it was, and what it is from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CostChange {
    pub(crate) charged: u64,
    pub(crate) used: u64,
}

impl CostChange {
    /// Returns what a sum that has counted the call is from now on: no more than `most`.
    pub(crate) fn corrected(self, sum: u64, most: u64) -> u64 {
        sum.saturating_sub(self.given_back()).saturating_add(self.beyond()).min(most)
    }

    /// Returns the part of the charge that is given back.
    pub(crate) fn given_back(self) -> u64 {
        self.charged.saturating_sub(self.used)
    }

    /// Returns what was used beyond the charge.
    pub(crate) fn beyond(self) -> u64 {
        self.used.saturating_sub(self.charged)
    }

    /// Returns the same where no call counts more than that.
    pub(crate) fn at_most(self, most: u64) -> Self {
        Self { charged: self.charged.min(most), used: self.used.min(most) }
    }
}
