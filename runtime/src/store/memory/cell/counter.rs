//! Sliding counters: the current slot, and the one before in proportion to what the window still covers of it.

use tallygate_rules::MAX_COUNTER_COUNT;

use super::state::Cell;
use crate::decision::{CostChange, Quota, Wait};

pub(super) fn at(cell: Cell, slot_us: u64, now_us: u64) -> Cell {
    let start_us = now_us - now_us % slot_us;
    match start_us.checked_sub(cell.stamp_us) {
        Some(0) => cell,
        Some(passed) if passed == slot_us => Cell { stamp_us: start_us, amount: 0, other: cell.amount, ..cell },
        _ => Cell { stamp_us: start_us, ..Cell::default() },
    }
}

pub(super) fn wait(cell: Cell, count: u64, slot_us: u64, cost: u64, now_us: u64) -> Wait {
    let left_us = cell.stamp_us + slot_us - now_us;
    let Some(most) = count.checked_sub(cost) else { return Wait::NEVER };
    match most.checked_sub(cell.amount) {
        // Not in this slot. In the next one the weight of this fades, until `most` of it are left.
        None => Wait::us(left_us + slot_us - share(slot_us, most, cell.amount)),
        Some(free) if free < cell.other => Wait::us(left_us.saturating_sub(share(slot_us, free, cell.other))),
        Some(_) => Wait::NONE,
    }
}

/// The weight of a slot counts until the end of the next slot.
pub(super) fn refunded(cell: Cell, slot_us: u64, costs: CostChange, admitted_us: u64, now_us: u64) -> Cell {
    let ends_us = cell.stamp_us + slot_us;
    let slot = cell.stamp_us..ends_us;
    if slot.contains(&admitted_us) && now_us < ends_us + slot_us {
        Cell { amount: costs.corrected(cell.amount, MAX_COUNTER_COUNT), ..cell }
    } else if slot.contains(&(admitted_us + slot_us)) && now_us < ends_us {
        Cell { other: costs.corrected(cell.other, MAX_COUNTER_COUNT), ..cell }
    } else {
        cell
    }
}

pub(super) fn quota(cell: Cell, count: u64, slot_us: u64, now_us: u64) -> Quota {
    let left_us = cell.stamp_us + slot_us - now_us;
    let faded = (u128::from(cell.other) * u128::from(left_us)).div_ceil(u128::from(slot_us));
    let used = u128::from(cell.amount) + faded;
    let reset_us = match (cell.amount, cell.other) {
        (0, 0) => 0,
        (0, _) => left_us,
        _ => left_us + slot_us,
    };
    Quota::new(u64::try_from(u128::from(count).saturating_sub(used)).unwrap_or(0), reset_us)
}

/// `slot · part / whole`, rounded down; `part` is the smaller.
fn share(slot_us: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(slot_us) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(slot_us)
}
