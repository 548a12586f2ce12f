//! Fixed windows, which open at the first hit.

use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::{MAX_EXACT, Rule};

use super::counting::{Cell, Celled, CostChange, Counting, Kept, Quota, Span};
#[cfg(feature = "redis")]
use super::counting::{TickLists, pack_rule};
use crate::micros;
use crate::wait::Wait;

#[derive(Clone, Copy, Debug)]
pub(super) struct WindowFromFirstHit {
    count: u64,
    per_us: u64,
}

impl WindowFromFirstHit {
    pub(super) fn new(rule: &Rule, per: Duration) -> Self {
        Self { count: rule.count(), per_us: micros::from_duration(per) }
    }
}

impl Counting for WindowFromFirstHit {
    fn kept(&self) -> Kept {
        Kept::Cell(Arc::new(*self))
    }

    fn memory_us(&self) -> u64 {
        self.per_us
    }

    fn slides(&self) -> bool {
        false
    }

    fn most_admitted(&self, within: Span, room: Option<u64>) -> Option<u64> {
        // If this rule is the reason to wait, a new window begins with the first caller.
        let begun = if room.is_some() { 1 } else { 2 };
        Some(self.count.saturating_mul(within.windows(self.per_us) + begun))
    }

    #[cfg(feature = "redis")]
    fn pack(&self, packed: &mut Vec<u8>, _ticks: &mut TickLists<'_>) {
        pack_rule(packed, tallygate_lua::FIXED_WINDOW, self.count, self.per_us);
    }
}

impl Celled for WindowFromFirstHit {
    fn tag(&self) -> String {
        format!("f{}", self.per_us)
    }

    fn at(&self, cell: Cell, now_us: u64) -> Cell {
        if cell.stamp_us + self.per_us <= now_us { Cell { stamp_us: now_us, ..Cell::default() } } else { cell }
    }

    fn wait(&self, cell: Cell, cost: u64, now_us: u64) -> Wait {
        wait(cell, self.count, self.expires_us(cell), cost, now_us)
    }

    fn refunded(&self, cell: Cell, costs: CostChange, admitted_us: u64, now_us: u64) -> Cell {
        let window = cell.stamp_us..self.expires_us(cell);
        corrected_if(window.contains(&admitted_us) && window.contains(&now_us), cell, costs)
    }

    fn quota(&self, cell: Cell, now_us: u64) -> Quota {
        quota(cell, self.count, self.expires_us(cell), now_us)
    }

    fn expires_us(&self, cell: Cell) -> u64 {
        cell.stamp_us + self.per_us
    }
}

pub(super) fn wait(cell: Cell, count: u64, ends_us: u64, cost: u64, now_us: u64) -> Wait {
    match count.checked_sub(cost) {
        None => Wait::NEVER,
        Some(most) if cell.amount <= most => Wait::NONE,
        Some(_) => Wait::until(ends_us, now_us),
    }
}

pub(super) fn corrected_if(counts: bool, cell: Cell, costs: CostChange) -> Cell {
    if counts { Cell { amount: costs.corrected(cell.amount, MAX_EXACT), ..cell } } else { cell }
}

pub(super) fn quota(cell: Cell, count: u64, ends_us: u64, now_us: u64) -> Quota {
    let reset_us = if cell.amount > 0 { ends_us - now_us } else { 0 };
    Quota::new(count.saturating_sub(cell.amount), reset_us)
}
