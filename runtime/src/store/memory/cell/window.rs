//! Windows that end at a known time: fixed ones, which open at the first hit, and those of a schedule.

use tallygate_rules::MAX_EXACT;
#[cfg(feature = "cron")]
use tallygate_rules::Schedule;

use super::state::Cell;
use crate::decision::{CostChange, Quota, Wait};

pub(super) fn at(cell: Cell, window_us: u64, now_us: u64) -> Cell {
    if cell.stamp_us + window_us <= now_us { Cell { stamp_us: now_us, ..Cell::default() } } else { cell }
}

/// The next tick is stored, so the schedule is evaluated once per window.
#[cfg(feature = "cron")]
pub(super) fn at_ticks(cell: Cell, schedule: &Schedule, now_us: u64) -> Cell {
    if now_us < cell.other {
        return cell;
    }
    // A schedule that ticks no more never starts afresh.
    let coming = schedule.next_tick(now_us).unwrap_or(u64::MAX);
    Cell { stamp_us: now_us, amount: 0, other: coming, ..cell }
}

pub(super) fn wait(cell: Cell, count: u64, ends_us: u64, cost: u64, now_us: u64) -> Wait {
    match count.checked_sub(cost) {
        None => Wait::NEVER,
        Some(most) if cell.amount <= most => Wait::NONE,
        Some(_) => Wait::until(ends_us, now_us),
    }
}

pub(super) fn refunded(cell: Cell, window_us: u64, costs: CostChange, admitted_us: u64, now_us: u64) -> Cell {
    let window = cell.stamp_us..cell.stamp_us + window_us;
    corrected_if(window.contains(&admitted_us) && window.contains(&now_us), cell, costs)
}

#[cfg(feature = "cron")]
pub(super) fn refunded_within_ticks(
    cell: Cell,
    schedule: &Schedule,
    costs: CostChange,
    admitted_us: u64,
    now_us: u64,
) -> Cell {
    let last_tick_us = schedule.last_tick(now_us).unwrap_or(0);
    // A time later than the last hit was forgotten when the clock was set back.
    corrected_if(last_tick_us <= admitted_us && admitted_us <= cell.stamp_us, cell, costs)
}

fn corrected_if(counts: bool, cell: Cell, costs: CostChange) -> Cell {
    if counts { Cell { amount: costs.corrected(cell.amount, MAX_EXACT), ..cell } } else { cell }
}

pub(super) fn quota(cell: Cell, count: u64, ends_us: u64, now_us: u64) -> Quota {
    let reset_us = if cell.amount > 0 { ends_us - now_us } else { 0 };
    Quota::new(count.saturating_sub(cell.amount), reset_us)
}
