//! Token buckets, in integers: a level is tokens times `per`, so a microsecond adds exactly `count` to it.

use tallygate_rules::TokenBucket;

use super::state::Cell;
use crate::decision::{CostChange, Quota, Wait};
use crate::micros;

pub(super) fn at(cell: Cell, bucket: &TokenBucket, count: u64, now_us: u64) -> Cell {
    let per_us = micros::from_duration(bucket.per());
    let unused_us = cell.stamp_us + micros::from_duration(bucket.reset_after_for(count));
    if unused_us <= now_us {
        return Cell { stamp_us: now_us, amount: bucket.initial_for(count) * per_us, other: 0, since_us: now_us };
    }
    let full = bucket.capacity_for(count) * per_us;
    let flown = now_us.saturating_sub(cell.stamp_us).saturating_mul(count);
    Cell { amount: cell.amount.saturating_add(flown).min(full), other: unused_us, ..cell }
}

pub(super) fn wait(cell: Cell, bucket: &TokenBucket, count: u64, cost: u64, now_us: u64) -> Wait {
    if cost > bucket.capacity_for(count) {
        return Wait::NEVER;
    }
    let missing = (cost * micros::from_duration(bucket.per())).saturating_sub(cell.amount);
    if missing == 0 {
        return Wait::NONE;
    }
    // Nothing flows into an unused bucket, and one that is left alone is unused in the end.
    let flow_us = missing.div_ceil(count.max(1));
    let unused_us = cell.other.saturating_sub(now_us);
    if unused_us > flow_us {
        Wait::us(flow_us)
    } else if unused_us > 0 && bucket.initial_for(count) >= cost {
        Wait::us(unused_us)
    } else {
        Wait::NEVER
    }
}

/// Tokens that flow in are lost once the bucket is unused.
pub(super) fn lapse(cell: Cell, bucket: &TokenBucket, count: u64, cost: u64, now_us: u64) -> Option<Wait> {
    let unused_us = cell.other.saturating_sub(now_us);
    (unused_us > 0 && bucket.initial_for(count) < cost).then(|| Wait::us(unused_us))
}

pub(super) fn charged(cell: Cell, bucket: &TokenBucket, count: u64, cost: u64, now_us: u64) -> Cell {
    taken(cell, bucket, count, cost * micros::from_duration(bucket.per()), now_us)
}

/// Takes that part of its level out of a bucket of that time.
fn taken(cell: Cell, bucket: &TokenBucket, count: u64, level: u64, now_us: u64) -> Cell {
    let full = bucket.capacity_for(count) * micros::from_duration(bucket.per());
    // A full bucket holds the same, whatever was taken before.
    let since_us = if cell.amount == full { now_us } else { cell.since_us };
    Cell {
        stamp_us: now_us,
        amount: cell.amount - level,
        other: now_us + micros::from_duration(bucket.reset_after_for(count)),
        since_us,
    }
}

/// What was used beyond the cost is taken like a hit of now, as far as there is something: what was reserved may have flowed
/// in again meanwhile.
pub(super) fn refunded(
    cell: Cell,
    bucket: &TokenBucket,
    count: u64,
    costs: CostChange,
    admitted_us: u64,
    now_us: u64,
) -> Cell {
    let is_unused = cell.stamp_us + micros::from_duration(bucket.reset_after_for(count)) <= now_us;
    if is_unused || admitted_us > cell.stamp_us {
        return cell;
    }
    let per_us = micros::from_duration(bucket.per());
    let full = bucket.capacity_for(count) * per_us;
    let current = at(cell, bucket, count, now_us);
    let beyond = costs.beyond().saturating_mul(per_us).min(current.amount);
    if beyond > 0 {
        taken(current, bucket, count, beyond, now_us)
    } else if current.amount < full && cell.since_us <= admitted_us {
        // A full bucket holds nothing of any hit.
        Cell { amount: cell.amount.saturating_add(costs.given_back().saturating_mul(per_us)).min(full), ..cell }
    } else {
        cell
    }
}

pub(super) fn quota(cell: Cell, bucket: &TokenBucket, count: u64, now_us: u64) -> Quota {
    let per_us = micros::from_duration(bucket.per());
    let missing = bucket.capacity_for(count) * per_us - cell.amount;
    let fill_us = missing.div_ceil(count.max(1));
    Quota::new(cell.amount / per_us, fill_us.min(cell.other.saturating_sub(now_us)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bucket_gains_nothing_from_a_clock_that_was_set_back() {
        let bucket = TokenBucket::new(Duration::from_secs(1));
        let cell = Cell { stamp_us: 10_000_000, ..Cell::default() };
        assert_eq!(at(cell, &bucket, 5, 9_500_000).amount, 0);
        assert_eq!(at(cell, &bucket, 5, 10_200_000).amount, 1_000_000);
    }
}
