//! Fixed windows, which open at the first hit.

use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::{MAX_EXACT, Rule};

use super::counting::{Cell, Celled, CostChange, Counting, Kept, Quota, Remnant, Span};
#[cfg(feature = "redis")]
use super::counting::{TickLists, pack_rule};
use crate::micros;
use crate::wait::Wait;

/// Marks a window that a remnant has restored. Its start is unknown, so it slides until nothing was counted for one `per`.
const RESTORED: u64 = 1;

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

    fn charged(&self, cell: Cell, cost: u64, now_us: u64) -> Cell {
        // If only a remnant is known, that window may be over, and another one may open now.
        let stamp_us = if cell.other == RESTORED { now_us } else { cell.stamp_us };
        Cell { stamp_us, amount: cell.amount + cost, ..cell }
    }

    fn refunded(&self, cell: Cell, costs: CostChange, admitted_us: u64, now_us: u64) -> Cell {
        let window = cell.stamp_us..self.expires_us(cell);
        // It is not known when a window has opened of which only a remnant is left: use beyond a cost counts in any case.
        let is_in_window = window.contains(&admitted_us) || costs.beyond() > 0 && cell.other == RESTORED;
        corrected_if(is_in_window && window.contains(&now_us), cell, costs)
    }

    fn quota(&self, cell: Cell, now_us: u64) -> Quota {
        quota(cell, self.count, self.expires_us(cell), now_us)
    }

    fn remnants(&self, cell: Cell, _now_us: u64) -> [Remnant; 2] {
        // One more, because a window stays open even if everything was refunded.
        [Remnant::until(self.expires_us(cell), cell.amount + 1), Remnant::default()]
    }

    fn restored(&self, [left, _]: [&[Remnant]; 2], now_us: u64) -> Cell {
        let Remnant { ends_us, amount, .. } = Remnant::join_all(left);
        if ends_us <= now_us {
            return Cell::default();
        }
        let stamp_us = ends_us.saturating_sub(self.per_us).min(now_us);
        // The greatest amount stands for all that are too great to be written.
        let amount = if amount < MAX_EXACT { amount.saturating_sub(1) } else { amount };
        Cell { stamp_us, amount, other: RESTORED, ..Cell::default() }
    }

    fn without_others(&self, cell: Cell, [all, own]: [Cell; 2], now_us: u64) -> Cell {
        let cell = self.at(cell, now_us);
        // While the window slides, it counts what it began with.
        let others = if cell.other == RESTORED { all.amount.saturating_sub(own.amount) } else { 0 };
        Cell { amount: cell.amount.saturating_sub(others), ..cell }
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn a_window_of_which_only_a_remnant_is_known_slides_because_it_may_have_ended_before() {
        let window = WindowFromFirstHit { count: 5, per_us: 60 * SECOND };
        // One subject has called once at 0 s, and another that seems to be the same one three times at 30 s.
        let mut left = [Remnant::until(60 * SECOND, 2), Remnant::until(90 * SECOND, 4)];
        for _ in 0..2 {
            left.reverse();
            let mut cell = window.restored([&left, &[]], 70 * SECOND);
            let decide = |cell: &mut Cell, seconds| window.decide(cell, 1, seconds * SECOND).wait;
            assert!(decide(&mut cell, 70).is_none() && decide(&mut cell, 70).is_none());
            // The subject of the first call has opened a window at 70 s.
            assert_eq!([90, 129].map(|seconds| decide(&mut cell, seconds)), [40, 1].map(|s| Wait::us(s * SECOND)));
            assert!(decide(&mut cell, 130).is_none());
            assert_eq!(window.quota(cell, 130 * SECOND).remaining, 4);
        }
    }
}
