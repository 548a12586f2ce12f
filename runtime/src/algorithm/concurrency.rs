//! Limits on concurrent calls. A tally keeps only leases for such a limit: `store/memory/leases.rs`, and
//! `lua/parts/leases.lua`.

use std::time::Duration;

use tallygate_rules::Rule;

use super::counting::{Counting, Kept, Span};
#[cfg(feature = "redis")]
use super::counting::{TickLists, pack_rule};
use crate::micros;

pub(super) struct ConcurrentCalls {
    limit: u64,
    lease_us: u64,
}

impl ConcurrentCalls {
    pub(super) fn new(rule: &Rule, lease: Duration) -> Self {
        Self { limit: rule.count(), lease_us: micros::from_duration(lease) }
    }
}

impl Counting for ConcurrentCalls {
    fn kept(&self) -> Kept {
        Kept::Leases
    }

    fn memory_us(&self) -> u64 {
        self.lease_us
    }

    fn slides(&self) -> bool {
        false
    }

    fn most_admitted(&self, _within: Span, _room: Option<u64>) -> Option<u64> {
        // A concurrent call may end at any time.
        None
    }

    #[cfg(feature = "redis")]
    fn pack(&self, packed: &mut Vec<u8>, _ticks: &mut TickLists<'_>) {
        pack_rule(packed, tallygate_lua::CONCURRENCY, self.limit, self.lease_us);
    }

    #[cfg(feature = "redis")]
    fn work_ns(&self, _is_reported: bool) -> u32 {
        // The work includes the removal of leases that have ended.
        60_000
    }
}
