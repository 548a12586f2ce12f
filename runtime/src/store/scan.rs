//! A scan of tallies, in short steps.

use super::answer::ScanStep;
use super::memory::{Memory, ShardScan};
use super::redis::{KeyScan, Redis};
use crate::error::BackendError;

/// A scan of the tallies of some rule groups, whatever their layout.
pub(crate) enum Scan<'a> {
    Memory(&'a Memory, ShardScan),
    Redis(&'a Redis, KeyScan),
}

impl Scan<'_> {
    /// Makes one step; `None` at the end.
    pub(crate) async fn step(&mut self) -> Result<Option<ScanStep>, BackendError> {
        match self {
            Self::Memory(memory, scan) => Ok(memory.step(scan)),
            Self::Redis(redis, scan) => redis.step(scan).await,
        }
    }

    /// Returns which shard or server comes next, and the cursor there; `None` at the end.
    #[cfg(feature = "web")]
    pub(crate) fn upcoming(&self) -> Option<(usize, u64)> {
        match self {
            Self::Memory(_, scan) => scan.upcoming(),
            Self::Redis(_, scan) => scan.upcoming(),
        }
    }

    /// Goes on with this shard or server, at this cursor; returns whether it exists.
    #[cfg(feature = "web")]
    pub(crate) fn go_to(&mut self, place: (usize, u64)) -> bool {
        match self {
            Self::Memory(_, scan) => scan.go_to(place),
            Self::Redis(_, scan) => scan.go_to(place),
        }
    }
}
