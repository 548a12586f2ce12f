//! Sliding counters: the current slot, and the slot before in proportion to how much of it the window still covers.

use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::{MAX_COUNTER_COUNT, Rule};

use super::counting::{Cell, Celled, CostChange, Counting, Kept, Quota, Remnant, Span};
#[cfg(feature = "redis")]
use super::counting::{TickLists, pack_rule};
use crate::micros;
use crate::wait::Wait;

#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    count: u64,
    slot_us: u64,
}

impl Slots {
    pub(super) fn new(rule: &Rule, per: Duration) -> Self {
        Self { count: rule.count(), slot_us: micros::from_duration(per) }
    }
}

impl Counting for Slots {
    fn kept(&self) -> Kept {
        Kept::Cell(Arc::new(*self))
    }

    fn memory_us(&self) -> u64 {
        2 * self.slot_us
    }

    fn slides(&self) -> bool {
        true
    }

    fn most_admitted(&self, within: Span, _room: Option<u64>) -> Option<u64> {
        Some(self.count.saturating_mul(within.windows(self.slot_us) + 2))
    }

    #[cfg(feature = "redis")]
    fn pack(&self, packed: &mut Vec<u8>, _ticks: &mut TickLists<'_>) {
        pack_rule(packed, tallygate_lua::SLIDING_COUNTER, self.count, self.slot_us);
    }
}

impl Celled for Slots {
    fn tag(&self) -> String {
        format!("c{}", self.slot_us)
    }

    fn at(&self, cell: Cell, now_us: u64) -> Cell {
        let start_us = now_us - now_us % self.slot_us;
        match start_us.checked_sub(cell.stamp_us) {
            Some(0) => cell,
            Some(passed) if passed == self.slot_us => {
                Cell { stamp_us: start_us, amount: 0, other: cell.amount, ..cell }
            }
            _ => Cell { stamp_us: start_us, ..Cell::default() },
        }
    }

    fn wait(&self, cell: Cell, cost: u64, now_us: u64) -> Wait {
        let left_us = cell.stamp_us + self.slot_us - now_us;
        let Some(most) = self.count.checked_sub(cost) else { return Wait::NEVER };
        match most.checked_sub(cell.amount) {
            // The call does not fit into this slot. In the next one, the weight of this slot fades to `most`.
            None => Wait::us(left_us + self.slot_us - share(self.slot_us, most, cell.amount)),
            Some(free) if free < cell.other => Wait::us(left_us.saturating_sub(share(self.slot_us, free, cell.other))),
            Some(_) => Wait::NONE,
        }
    }

    fn refunded(&self, cell: Cell, costs: CostChange, admitted_us: u64, now_us: u64) -> Cell {
        let ends_us = cell.stamp_us + self.slot_us;
        let slot = cell.stamp_us..ends_us;
        // The weight of a slot counts until the end of the next slot.
        if slot.contains(&admitted_us) && now_us < ends_us + self.slot_us {
            Cell { amount: costs.corrected(cell.amount, MAX_COUNTER_COUNT), ..cell }
        } else if slot.contains(&(admitted_us + self.slot_us)) && now_us < ends_us {
            Cell { other: costs.corrected(cell.other, MAX_COUNTER_COUNT), ..cell }
        } else {
            cell
        }
    }

    fn left(&self, cell: Cell, most: u64, admitted_us: u64, now_us: u64) -> Cell {
        let present = self.at(cell, now_us);
        // The slot before fades. If a call of that slot added something to it, the same number would add more a moment later.
        if admitted_us < present.stamp_us || cell.is_after(now_us) {
            return cell;
        }
        let beyond = self.quota(present, now_us).remaining.saturating_sub(most);
        Cell { amount: present.amount + beyond, ..present }
    }

    fn quota(&self, cell: Cell, now_us: u64) -> Quota {
        let left_us = cell.stamp_us + self.slot_us - now_us;
        let faded = (u128::from(cell.other) * u128::from(left_us)).div_ceil(u128::from(self.slot_us));
        let used = u128::from(cell.amount) + faded;
        let reset_us = match (cell.amount, cell.other) {
            (0, 0) => 0,
            (0, _) => left_us,
            _ => left_us + self.slot_us,
        };
        Quota::new(u64::try_from(u128::from(self.count).saturating_sub(used)).unwrap_or(0), reset_us)
    }

    fn remnants(&self, cell: Cell, _now_us: u64) -> [Remnant; 2] {
        [Remnant::until(self.expires_us(cell), cell.amount), Remnant::until(cell.stamp_us + self.slot_us, cell.other)]
    }

    fn restored(&self, [last, before]: [&[Remnant]; 2], now_us: u64) -> Cell {
        let cell = Cell { stamp_us: now_us - now_us % self.slot_us, ..Cell::default() };
        let ends_us = self.expires_us(cell);
        // What was counted last was counted in this slot, or in the one before.
        let of_before = last.iter().filter(|remnant| remnant.ends_us < ends_us).chain(before);
        // One that ends before this slot is over already, and was rounded up.
        let of_before = of_before.filter(|remnant| remnant.ends_us >= cell.stamp_us + self.slot_us);
        let of_before = of_before.map(|remnant| remnant.amount).max();
        Cell { amount: Remnant::most_from(last, ends_us), other: of_before.unwrap_or_default(), ..cell }
    }

    fn without_others(&self, cell: Cell, restored: [Cell; 2], now_us: u64) -> Cell {
        let [cell, all, own] = [cell, restored[0], restored[1]].map(|cell| self.at(cell, now_us));
        Cell {
            amount: (cell.amount + own.amount).saturating_sub(all.amount),
            other: (cell.other + own.other).saturating_sub(all.other),
            ..cell
        }
    }

    fn expires_us(&self, cell: Cell) -> u64 {
        cell.stamp_us + 2 * self.slot_us
    }
}

/// Returns `slot · part / whole`, rounded down. `part` is less than `whole`.
fn share(slot_us: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(slot_us) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(slot_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_in_a_slot_that_is_over_counts_no_more_although_its_end_was_rounded_up() {
        let slots = Slots { count: 5, slot_us: 1_000 };
        let left = [Remnant::until(10_003, 4)];
        assert_eq!(slots.restored([&left, &[]], 10_001), Cell { stamp_us: 10_000, ..Cell::default() });
        let cell = slots.restored([&left, &[]], 9_999);
        assert_eq!((cell.stamp_us, cell.amount, cell.other), (9_000, 0, 4));
    }
}
