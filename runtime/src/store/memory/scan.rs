//! A scan of tallies, shard by shard.

use std::ops::Range;

use super::Memory;
use crate::store::answer::ScanStep;

/// A step ends with the shard in which it reaches this many tallies.
const COUNT: usize = 250;

/// A scan of the tallies of some rule groups, whatever their layout.
pub(crate) struct ShardScan {
    /// The start of each rule group's segments, before the layout.
    names: Vec<String>,
    /// The shards that have not been scanned.
    shards: Range<usize>,
}

impl Memory {
    /// See [`Store::scan`](crate::store::Store::scan).
    pub(crate) fn scan(&self, names: &[String]) -> ShardScan {
        ShardScan { names: names.to_vec(), shards: 0..self.shards.len() }
    }

    /// Makes one step; `None` at the end.
    pub(crate) fn step(&self, scan: &mut ShardScan) -> Option<ScanStep> {
        if scan.shards.is_empty() {
            return None;
        }
        let (mut subjects, mut looked_at) = (Vec::new(), 0);
        // A step takes whole shards, because a shard that grows between two steps moves its tallies.
        while looked_at < COUNT
            && let Some(shard) = scan.shards.next()
        {
            let shard = self.lock(shard);
            looked_at += shard.len();
            subjects.extend(shard.subjects(&scan.names, self.now_us()));
        }
        Some(ScanStep { subjects, progress: scan.progress() })
    }
}

impl ShardScan {
    /// Returns the next shard, and its start as the cursor; `None` at the end.
    #[cfg(feature = "web")]
    pub(crate) fn upcoming(&self) -> Option<(usize, u64)> {
        (!self.shards.is_empty()).then_some((self.shards.start, 0))
    }

    /// Goes on with this shard; returns whether it exists.
    #[cfg(feature = "web")]
    pub(crate) fn go_to(&mut self, (shard, _): (usize, u64)) -> bool {
        self.shards.start = shard;
        !self.shards.is_empty()
    }

    #[allow(clippy::cast_precision_loss, reason = "there are some hundred shards at most")]
    fn progress(&self) -> f64 {
        self.shards.start as f64 / self.shards.end as f64
    }
}
