//! A refund or a settlement, read from what a server has done.

use super::deed::Deed;

/// What a script has made of the costs of an admitted call.
#[derive(Debug)]
pub(crate) struct Recount<'d> {
    /// The tallies of its subjects.
    pub(crate) keys: &'d [String],
    /// What it weighed in each of them; `None` if it weighed nothing and is only charged now.
    costs: Option<&'d [u64]>,
    /// What it weighs from now on.
    pub(crate) used: &'d [u64],
}

impl Deed {
    /// Returns what a refund or a settlement has changed, whether by a correction or by a charge that comes late.
    pub(crate) fn recount(&self) -> Option<Recount<'_>> {
        match self {
            Self::Corrected { keys, costs, used, .. } => Some(Recount { keys, costs: Some(costs), used }),
            Self::Decided { keys, costs, is_late: true, .. } => Some(Recount { keys, costs: None, used: costs }),
            _ => None,
        }
    }
}

impl Recount<'_> {
    /// Whether nothing had been charged before.
    pub(crate) fn is_late(&self) -> bool {
        self.costs.is_none()
    }

    /// Returns what the call weighed in a tally, and what it weighs from now on.
    pub(crate) fn change(&self, place: usize) -> Option<(u64, u64)> {
        let cost = self.costs.map_or(Some(0), |costs| costs.get(place).copied())?;
        Some((cost, *self.used.get(place)?))
    }
}
