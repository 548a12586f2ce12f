//! Token buckets in integers. A level is tokens times `per`, so each microsecond adds exactly `count` to it.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::quality::FixedState;
use tallygate_rules::TokenBucket;

use super::counting::{Cell, Celled, CostChange, Counting, Kept, Quota, Remnant, Span};
#[cfg(feature = "redis")]
use super::counting::{TickLists, pack_integer, pack_rule};
use crate::micros;
use crate::wait::Wait;

/// Stand for `since_us` in a bucket that has returned: unchanged, changed only by use beyond the cost of an earlier hit, and
/// hit again. Nobody knows when it was last full, so nothing is given back before it is full. The first two have the
/// [parameters](Bucket::parameters_hash) in their lower bits.
const RESTORED_US: u64 = 1 << 62;
const AMENDED_US: u64 = 1 << 63;
const RETURNED_US: u64 = u64::MAX;

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

    fn parameters_hash(&self) -> u64 {
        FixedState::default().hash_one((self.count, self.capacity, self.initial, self.reset_after_us))
    }

    /// Two amounts that identify the parameters, each of which is [kept](Remnant) exactly.
    fn mark(&self) -> [u64; 2] {
        let hash = self.parameters_hash();
        [hash, hash >> 32].map(|bits| (32 + bits % 32) << (3 * (bits / 32 % 15)))
    }

    /// Stands for `since_us` in a bucket that has returned with these parameters and was not hit since.
    fn returned_as(&self, state_us: u64) -> u64 {
        state_us | self.parameters_hash() & (RESTORED_US - 1)
    }

    /// Takes a part of the level out of a present cell.
    fn taken(&self, cell: Cell, level: u64, now_us: u64) -> Cell {
        // Earlier hits do not count in a full bucket.
        let since_us = match cell.since_us {
            _ if cell.amount == self.full() => now_us,
            since_us if since_us >= RESTORED_US => RETURNED_US,
            since_us => since_us,
        };
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
        let (amount, most) = if is_not_hit(cell) {
            // Its hit was earlier than is known. With another count, less has flowed in since then, so nothing is known about
            // the level.
            let has_same = cell.since_us == self.returned_as(state(cell));
            // A remnant was rounded up: the bucket may be unused already, and then has only its initial tokens.
            (if has_same { cell.amount } else { 0 }, self.full().min(self.initial * self.per_us))
        } else {
            (cell.amount, self.full())
        };
        Cell { amount: amount.saturating_add(flown).min(most), other: unused_us, ..cell }
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
        // A bucket that has returned may have held more than is known. Then the use was taken from that, and is noted.
        let may_be_taken = costs.beyond() > 0 && cell.since_us >= RESTORED_US;
        if beyond > 0 || may_be_taken {
            let taken = self.taken(current, beyond, now_us);
            // A bucket that has returned may be unused, so this is not counted as a hit.
            if is_not_hit(cell) { Cell { since_us: self.returned_as(AMENDED_US), ..taken } } else { taken }
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

    fn remnants(&self, cell: Cell, now_us: u64) -> [Remnant; 2] {
        // The trace still has what was restored. To add it again would round it up once more.
        if self.unused_us(cell) <= now_us || is_not_hit(cell) && state(cell) == RESTORED_US {
            return [Remnant::default(); 2];
        }
        // The level is told by when the bucket is full again.
        let missing = self.full().saturating_sub(self.at(cell, now_us).amount);
        let full_us = now_us + missing.div_ceil(self.count.max(1));
        let [one, other] = self.mark();
        [Remnant::until(full_us, one), Remnant::until(self.unused_us(cell), other)]
    }

    fn remnants_are_named(&self) -> bool {
        true
    }

    fn restored(&self, [full, unused]: [&[Remnant]; 2], now_us: u64) -> Cell {
        let [one, other] = self.mark();
        // A joined remnant may be that of a rule with other parameters.
        let are_of = |remnants: &[Remnant], mark| remnants.iter().all(|left| left.amount == mark && !left.is_joined);
        let is_same = are_of(full, one) && are_of(unused, other);
        let [full, unused] = [full, unused].map(Remnant::join_all);
        if unused.ends_us <= now_us {
            return Cell::default();
        }
        let missing = full.ends_us.saturating_sub(now_us).saturating_mul(self.count);
        // With other parameters, nothing is known about the level.
        let level = if is_same { self.full().saturating_sub(missing) } else { 0 };
        let hit_us = unused.ends_us.saturating_sub(self.reset_after_us).min(now_us);
        let flown_us = (now_us - hit_us).min(level / self.count.max(1));
        let (stamp_us, amount) = (now_us - flown_us, level - flown_us * self.count);
        Cell { stamp_us, amount, other: stamp_us + self.reset_after_us, since_us: self.returned_as(RESTORED_US) }
    }

    fn without_others(&self, cell: Cell, restored: [Cell; 2], now_us: u64) -> Cell {
        let [cell, all, own] = [cell, restored[0], restored[1]].map(|cell| self.at(cell, now_us));
        Cell { amount: (cell.amount + own.amount).saturating_sub(all.amount).min(self.full()), ..cell }
    }

    fn expires_us(&self, cell: Cell) -> u64 {
        cell.other
    }
}

/// Whether the bucket has returned, and was not hit since.
fn is_not_hit(cell: Cell) -> bool {
    (RESTORED_US..RETURNED_US).contains(&cell.since_us)
}

fn state(cell: Cell) -> u64 {
    if cell.since_us < AMENDED_US { RESTORED_US } else { AMENDED_US }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bucket_that_has_returned_leaves_nothing_more_before_something_is_taken() {
        let bucket = Bucket::new(5, TokenBucket::new(Duration::from_secs(5)));
        let now_us = 1_000_000_000;
        let cell = bucket.charged(bucket.at(Cell::default(), now_us), 3, now_us);
        let [full, unused] = bucket.remnants(cell, now_us).map(|left| [left]);
        let mut returned = bucket.restored([&full, &unused], now_us + 1);
        assert_eq!(bucket.quota(bucket.at(returned, now_us + 1), now_us + 1).remaining, 2);
        let leaves = |cell| bucket.remnants(cell, now_us + 1).iter().any(|left| left.amount > 0);
        assert!(!leaves(returned));
        let beyond = bucket.refunded(returned, CostChange { charged: 0, used: 1 }, now_us, now_us + 1);
        assert!(leaves(beyond));
        assert!(bucket.decide(&mut returned, 1, now_us + 1).wait.is_none() && leaves(returned));
    }

    #[test]
    fn a_bucket_that_has_returned_holds_no_more_by_a_smaller_count() {
        let [great, small] = [50, 5].map(|count| Bucket::new(count, TokenBucket::new(Duration::from_secs(5))));
        let [hit_us, now_us, later_us] = [1_000_000_000, 1_002_000_000, 1_002_900_000];
        let cell = great.charged(great.at(Cell::default(), hit_us), 48, hit_us);
        let left = great.remnants(cell, now_us);
        // Others that share the places were hit later, and are full sooner.
        let others = great.charged(great.at(Cell::default(), now_us), 1, now_us);
        let [[full, unused], [other_full, other_unused]] = [left, great.remnants(others, now_us)];
        for ends_us in [0, 1, 4096] {
            let [full, unused] = [full, unused].map(|left| Remnant { ends_us: left.ends_us + ends_us, ..left });
            for shared in [[&[full][..], &[unused]], [&[full, other_full], &[unused, other_unused]]] {
                let returned = great.restored(shared, now_us);
                assert!(small.at(returned, later_us).amount <= small.at(cell, later_us).amount);
                assert!(great.at(returned, later_us).amount <= great.at(cell, later_us).amount);
            }
        }
    }

    #[test]
    fn use_beyond_a_cost_is_left_by_a_bucket_that_has_returned_with_nothing() {
        let bucket = Bucket::new(5, TokenBucket::new(Duration::from_secs(5)));
        let [hit_us, now_us] = [1_000_000_000, 1_001_000_000];
        let others = Remnant { is_joined: true, ..Remnant::until(hit_us + 5_000_000, 1) };
        let returned = bucket.restored([&[others], &[others]], now_us);
        assert_eq!(bucket.quota(bucket.at(returned, now_us), now_us).remaining, 0);
        let settled = bucket.refunded(returned, CostChange { charged: 1, used: 3 }, hit_us, now_us);
        assert!(bucket.remnants(settled, now_us).iter().all(|left| left.amount > 0));
    }

    #[test]
    fn a_bucket_gains_nothing_from_a_clock_that_was_set_back() {
        let parameters = TokenBucket::new(Duration::from_secs(1));
        let bucket = Bucket::new(5, parameters);
        let cell = Cell { stamp_us: 10_000_000, ..Cell::default() };
        assert_eq!(bucket.at(cell, 9_500_000).amount, 0);
        assert_eq!(bucket.at(cell, 10_200_000).amount, 1_000_000);
    }
}
