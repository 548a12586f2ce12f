//! Windows that end at the ticks of a schedule.

use tallygate_rules::{MAX_EXACT, Schedule};

use super::state::{Cell, wait_for_room};
use crate::decision::{CostChange, Quota, Wait};

/// The next tick is stored, so the schedule is evaluated once per window.
pub(super) fn at(cell: Cell, schedule: &Schedule, now_us: u64) -> Cell {
    if now_us < cell.other {
        return cell;
    }
    // A schedule that ticks no more never starts afresh.
    let coming = schedule.next_tick(now_us).unwrap_or(u64::MAX);
    Cell { stamp_us: now_us, amount: 0, other: coming, ..cell }
}

pub(super) fn wait(cell: Cell, count: u64, cost: u64, now_us: u64) -> Wait {
    wait_for_room(cell.amount, count, cost, || Wait::until(cell.other, now_us))
}

pub(super) fn refunded(cell: Cell, schedule: &Schedule, costs: CostChange, admitted_us: u64, now_us: u64) -> Cell {
    let last_tick_us = schedule.last_tick(now_us).unwrap_or(0);
    // What is later than the last hit was forgotten when the clock was set back.
    let counts = last_tick_us <= admitted_us && admitted_us <= cell.stamp_us;
    if counts { Cell { amount: costs.corrected(cell.amount, MAX_EXACT), ..cell } } else { cell }
}

pub(super) fn quota(cell: Cell, count: u64, now_us: u64) -> Quota {
    let reset_us = if cell.amount > 0 { cell.other - now_us } else { 0 };
    Quota::new(count.saturating_sub(cell.amount), reset_us)
}
