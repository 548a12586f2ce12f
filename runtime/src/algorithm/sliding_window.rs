//! Sliding windows, also those against duplicates. One log of a tally has the calls of all of them:
//! `store/memory/log.rs`, and `lua/parts/read.lua`.

use std::time::Duration;

#[cfg(feature = "redis")]
use tallygate_lua as lua;
use tallygate_rules::{Role, Rule};

use super::counting::{Counting, Kept, Span, Window};
#[cfg(feature = "redis")]
use super::counting::{TickLists, pack_rule};
use crate::micros;

impl Window {
    pub(super) fn new(rule: &Rule, per: Duration) -> Self {
        let is_duplicate = rule.role() == Role::Duplicate;
        Self { place: 0, count: rule.count(), per_us: micros::from_duration(per), is_duplicate }
    }
}

impl Counting for Window {
    fn kept(&self) -> Kept {
        Kept::Log(*self)
    }

    fn memory_us(&self) -> u64 {
        self.per_us
    }

    fn slides(&self) -> bool {
        true
    }

    fn most_admitted(&self, within: Span, _room: Option<u64>) -> Option<u64> {
        Some(self.count.saturating_mul(within.windows(self.per_us) + 1))
    }

    #[cfg(feature = "redis")]
    fn pack(&self, packed: &mut Vec<u8>, _ticks: &mut TickLists<'_>) {
        let kind = if self.is_duplicate { lua::DUPLICATE } else { lua::SLIDING_WINDOW };
        pack_rule(packed, kind, self.count, self.per_us);
    }

    #[cfg(feature = "redis")]
    fn work_ns(&self, is_reported: bool) -> u32 {
        let searches = if is_reported { 2 } else { 1 };
        searches * search_ns(self.count)
    }
}

/// The work of one step of a search in a log, in nanoseconds. `FAR_STEP` is for a log that is too long for the caches
/// of a processor.
#[cfg(feature = "redis")]
const STEP: u32 = 1_000;
#[cfg(feature = "redis")]
const FAR_STEP: u32 = 3_000;
/// A search continues in memory when this many entries are left, which takes as long as [`BLOCK_STEPS`].
#[cfg(feature = "redis")]
const BLOCK: u64 = 32;
#[cfg(feature = "redis")]
const BLOCK_STEPS: u32 = 2;
/// A log with more entries is too long for the caches, if the server has other logs.
#[cfg(feature = "redis")]
const NEAR: u64 = 16_384;

/// Returns the work of a search in the log of a window whose calls have different weights.
#[cfg(feature = "redis")]
pub(crate) fn search_ns(count: u64) -> u32 {
    // The log has as many entries as the count, and as many that no longer count.
    let entries = 2 * count.min(lua::LOG_ENTRIES as u64);
    let step = if entries > NEAR { FAR_STEP } else { STEP };
    let halvings = (entries / BLOCK).checked_ilog2();
    halvings.map_or(0, |halvings| (halvings + BLOCK_STEPS) * step)
}
