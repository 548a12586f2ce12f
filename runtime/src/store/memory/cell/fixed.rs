//! Fixed windows, which open at the first hit.

use tallygate_rules::MAX_EXACT;

use super::state::{Cell, wait_for_room};
use crate::decision::{CostChange, Quota, Wait};

pub(super) fn at(cell: Cell, window_us: u64, now_us: u64) -> Cell {
    if cell.stamp_us + window_us <= now_us { Cell { stamp_us: now_us, ..Cell::default() } } else { cell }
}

pub(super) fn wait(cell: Cell, count: u64, window_us: u64, cost: u64, now_us: u64) -> Wait {
    wait_for_room(cell.amount, count, cost, || Wait::until(cell.stamp_us + window_us, now_us))
}

pub(super) fn refunded(cell: Cell, window_us: u64, costs: CostChange, admitted_us: u64, now_us: u64) -> Cell {
    let window = cell.stamp_us..cell.stamp_us + window_us;
    let counts = window.contains(&admitted_us) && window.contains(&now_us);
    if counts { Cell { amount: costs.corrected(cell.amount, MAX_EXACT), ..cell } } else { cell }
}

pub(super) fn quota(cell: Cell, count: u64, window_us: u64, now_us: u64) -> Quota {
    let reset_us = if cell.amount > 0 { cell.stamp_us + window_us - now_us } else { 0 };
    Quota::new(count.saturating_sub(cell.amount), reset_us)
}
