//! Token buckets in integers. A level is tokens times `per`, so each microsecond adds exactly `count` to it.

use std::sync::Arc;

use tallygate_rules::TokenBucket;

use super::counting::{Cell, Celled, CostChange, Counting, Kept, Quota, Span};
#[cfg(feature = "redis")]
use super::counting::{TickLists, pack_integer, pack_rule};
use crate::micros;
use crate::wait::Wait;

#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    parameters: TokenBucket,
    count: u64,
    per_us: u64,
    capacity: u64,
    /// The number of tokens in an unused bucket.
    initial: u64,
    reset_after_us: u64,
}

impl Bucket {
    pub(super) fn new(count: u64, parameters: TokenBucket) -> Self {
        Self {
            parameters,
            count,
            per_us: micros::from_duration(parameters.per()),
            capacity: parameters.capacity_for(count),
            initial: parameters.initial_for(count),
            reset_after_us: micros::from_duration(parameters.reset_after_for(count)),
        }
    }

    fn full(&self) -> u64 {
        self.capacity * self.per_us
    }

    /// Returns when a bucket without further calls is unused again.
    fn unused_us(&self, cell: Cell) -> u64 {
        cell.stamp_us + self.reset_after_us
    }

    /// Takes a part of the level out of a present cell.
    fn taken(&self, cell: Cell, level: u64, now_us: u64) -> Cell {
        // Earlier hits do not count in a full bucket.
        let since_us = if cell.amount == self.full() { now_us } else { cell.since_us };
        Cell { stamp_us: now_us, amount: cell.amount - level, other: now_us + self.reset_after_us, since_us }
    }
}

impl Counting for Bucket {
    fn kept(&self) -> Kept {
        Kept::Cell(Arc::new(*self))
    }

    fn memory_us(&self) -> u64 {
        if self.count == 0 {
            // A rule that admits nothing still counts the calls that it admitted before.
            return Self::new(1, self.parameters).memory_us();
        }
        // A full bucket is like an unused one, unless an unused one has fewer tokens.
        if self.initial == self.capacity {
            self.reset_after_us.min(micros::from_duration(self.parameters.fill_time_for(self.count)))
        } else {
            self.reset_after_us
        }
    }

    fn slides(&self) -> bool {
        true
    }

    fn most_admitted(&self, within: Span, room: Option<u64>) -> Option<u64> {
        // A bucket that becomes unused gets its initial tokens again, so there is no bound.
        if self.parameters.reset_after().is_some() {
            return None;
        }
        // The wait is rounded up, so this time is, too.
        let us = u128::from(within.us()) + 2;
        let flown = u128::from(self.count) * us / u128::from(self.per_us.max(1));
        Some(room.unwrap_or(self.capacity).saturating_add(u64::try_from(flown).unwrap_or(u64::MAX)))
    }

    #[cfg(feature = "redis")]
    fn pack(&self, packed: &mut Vec<u8>, _ticks: &mut TickLists<'_>) {
        // The script divides by the count. With a count of 0, a bucket has no capacity, so its rate does not matter.
        pack_rule(packed, tallygate_lua::TOKEN_BUCKET, self.count.max(1), self.per_us);
        for number in [self.capacity, self.initial, self.reset_after_us] {
            pack_integer(packed, number);
        }
    }
}

impl Celled for Bucket {
    fn tag(&self) -> String {
        format!("b{}", self.per_us)
    }

    fn at(&self, cell: Cell, now_us: u64) -> Cell {
        let unused_us = self.unused_us(cell);
        if unused_us <= now_us {
            return Cell { stamp_us: now_us, amount: self.initial * self.per_us, other: 0, since_us: now_us };
        }
        let flown = now_us.saturating_sub(cell.stamp_us).saturating_mul(self.count);
        Cell { amount: cell.amount.saturating_add(flown).min(self.full()), other: unused_us, ..cell }
    }

    fn wait(&self, cell: Cell, cost: u64, now_us: u64) -> Wait {
        if cost > self.capacity {
            return Wait::NEVER;
        }
        let missing = (cost * self.per_us).saturating_sub(cell.amount);
        if missing == 0 {
            return Wait::NONE;
        }
        // Nothing flows into an unused bucket, and a bucket without further calls becomes unused.
        let flow_us = missing.div_ceil(self.count.max(1));
        let unused_us = cell.other.saturating_sub(now_us);
        if unused_us > flow_us {
            Wait::us(flow_us)
        } else if unused_us > 0 && self.initial >= cost {
            Wait::us(unused_us)
        } else {
            Wait::NEVER
        }
    }

    fn lapse(&self, cell: Cell, cost: u64, now_us: u64) -> Option<Wait> {
        // Tokens that flow in are lost once the bucket is unused.
        let unused_us = cell.other.saturating_sub(now_us);
        (unused_us > 0 && self.initial < cost).then(|| Wait::us(unused_us))
    }

    fn charged(&self, cell: Cell, cost: u64, now_us: u64) -> Cell {
        self.taken(cell, cost * self.per_us, now_us)
    }

    fn refunded(&self, cell: Cell, costs: CostChange, admitted_us: u64, now_us: u64) -> Cell {
        if self.unused_us(cell) <= now_us || admitted_us > cell.stamp_us {
            return cell;
        }
        let current = self.at(cell, now_us);
        // Use beyond the cost is taken like a hit at this time, up to the level: the reserved tokens may have flowed in
        // again.
        let beyond = costs.beyond().saturating_mul(self.per_us).min(current.amount);
        if beyond > 0 {
            self.taken(current, beyond, now_us)
        } else if current.amount < self.full() && cell.since_us <= admitted_us {
            // No hit counts in a full bucket, so nothing is given back.
            let given_back = costs.given_back().saturating_mul(self.per_us);
            Cell { amount: cell.amount.saturating_add(given_back).min(self.full()), ..cell }
        } else {
            cell
        }
    }

    fn quota(&self, cell: Cell, now_us: u64) -> Quota {
        let fill_us = (self.full() - cell.amount).div_ceil(self.count.max(1));
        Quota::new(cell.amount / self.per_us, fill_us.min(cell.other.saturating_sub(now_us)))
    }

    fn expires_us(&self, cell: Cell) -> u64 {
        cell.other
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bucket_gains_nothing_from_a_clock_that_was_set_back() {
        let parameters = TokenBucket::new(Duration::from_secs(1));
        let bucket = Bucket::new(5, parameters);
        let cell = Cell { stamp_us: 10_000_000, ..Cell::default() };
        assert_eq!(bucket.at(cell, 9_500_000).amount, 0);
        assert_eq!(bucket.at(cell, 10_200_000).amount, 1_000_000);
    }
}
