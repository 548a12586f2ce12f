//! A walk over tallies, shard by shard.

use std::ops::Range;

use super::Memory;
use crate::store::scan_step::ScanStep;

/// A step ends with the shard that reaches so many tallies.
const COUNT: usize = 250;

/// A walk over the tallies of some rule groups, whatever their layout.
pub(crate) struct ShardScan {
    /// The beginnings of the segments of each rule group, up to the layout.
    names: Vec<String>,
    /// The shards that were not walked over.
    shards: Range<usize>,
}

impl Memory {
    /// Starts a walk over the tallies of the rule groups whose segments have these names before the layout.
    pub(crate) fn scan(&self, names: &[String]) -> ShardScan {
        ShardScan { names: names.to_vec(), shards: 0..self.shards.len() }
    }

    /// Makes one step; `None` at the end.
    pub(crate) fn step(&self, scan: &mut ShardScan) -> Option<ScanStep> {
        if scan.shards.is_empty() {
            return None;
        }
        let (mut subjects, mut looked_at) = (Vec::new(), 0);
        // Whole shards: one that grows between two steps moves its tallies.
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
    /// Returns which shard comes next, at its start; `None` at the end.
    #[cfg(feature = "web")]
    pub(crate) fn upcoming(&self) -> Option<(usize, u64)> {
        (!self.shards.is_empty()).then_some((self.shards.start, 0))
    }

    /// Goes on with that shard; returns whether there is such a one.
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
