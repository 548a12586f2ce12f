//! How rules count: a file for each algorithm has all that this crate knows of it, in memory and on the wire.

mod concurrency;
mod counting;
#[cfg(feature = "cron")]
mod cron;
mod fixed_window;
mod sliding_counter;
mod sliding_window;
mod token_bucket;

#[cfg(feature = "redis")]
use std::sync::Arc;

use tallygate_rules::{Algorithm, Rule};

use self::concurrency::ConcurrentCalls;
#[cfg(feature = "redis")]
pub(crate) use self::counting::pack_integer;
#[cfg(feature = "redis")]
use self::counting::pack_rule;
pub(crate) use self::counting::{Cell, Celled, CostChange, Counting, Kept, Quota, Span, Window};
#[cfg(feature = "cron")]
pub(crate) use self::cron::Ticks;
#[cfg(feature = "cron")]
use self::cron::WindowsOfSchedule;
use self::fixed_window::WindowFromFirstHit;
use self::sliding_counter::Slots;
#[cfg(feature = "redis")]
pub(crate) use self::sliding_window::search_ns;
use self::token_bucket::Bucket;

/// Uses the algorithm of a rule.
// A closure, not a value that is returned: each arm knows the type, so no call in it is indirect.
#[inline]
pub(crate) fn with<T>(rule: &Rule, using: impl FnOnce(&dyn Counting) -> T) -> T {
    match rule.algorithm() {
        Algorithm::SlidingWindow { per } => using(&Window::new(rule, *per)),
        Algorithm::SlidingCounter { per } => using(&Slots::new(rule, *per)),
        Algorithm::FixedWindow { per } => using(&WindowFromFirstHit::new(rule, *per)),
        #[cfg(feature = "cron")]
        Algorithm::Cron { schedule } => using(&WindowsOfSchedule::new(rule, schedule)),
        Algorithm::TokenBucket(bucket) => using(&Bucket::new(rule.count(), bucket)),
        Algorithm::Concurrency { lease } => using(&ConcurrentCalls::new(rule, *lease)),
        _ => using(&Unknown),
    }
}

/// Uses the algorithm of a rule that keeps a cell; `None` for others.
#[inline]
pub(crate) fn with_cell<T>(rule: &Rule, using: impl FnOnce(&dyn Celled) -> T) -> Option<T> {
    with(rule, |counting| match counting.kept() {
        Kept::Cell(cell) => Some(using(cell)),
        Kept::Log(_) | Kept::Leases | Kept::Unknown => None,
    })
}

/// An algorithm of a later version: closed in memory, and refused by the script.
struct Unknown;

impl Counting for Unknown {
    fn kept(&self) -> Kept<'_> {
        Kept::Unknown
    }

    fn memory_us(&self) -> u64 {
        0
    }

    fn slides(&self) -> bool {
        false
    }

    fn most_admitted(&self, _within: Span, _room: Option<u64>) -> Option<u64> {
        None
    }

    #[cfg(feature = "redis")]
    fn pack(&self, packed: &mut Vec<u8>, _ticks: &mut std::slice::Iter<'_, Arc<[u64]>>) {
        pack_rule(packed, b'?', 0, 0);
    }

    #[cfg(feature = "redis")]
    fn work_ns(&self, _is_reported: bool) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_is_known() {
        for rule in Rule::of_each_algorithm() {
            assert!(with(&rule, |counting| !matches!(counting.kept(), Kept::Unknown)), "{rule}");
        }
    }
}
