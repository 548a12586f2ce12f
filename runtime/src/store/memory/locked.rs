//! Shards that a call has locked.

use std::ops::{Deref, DerefMut};

use super::shard::{Shard, TallyPlace};
use super::tally::Tally;
use super::trace::Left;
use crate::call::{Call, TallyId};
use crate::error::BackendError;
use crate::observe::GaugeChange;
use crate::policy::RuleGroup;
use crate::store::Outcome;
use crate::store::outcome_builder::OutcomeBuilder;
use crate::sync::MutexGuard;

/// A locked shard. The metrics are updated when it is unlocked.
pub(super) struct LockedShard<'a> {
    shard: MutexGuard<'a, Shard>,
    /// Dropped after the guard, so that the metrics are updated without the lock.
    change: GaugeChange,
}

impl<'a> LockedShard<'a> {
    #[inline]
    pub(super) fn new(shard: MutexGuard<'a, Shard>) -> Self {
        Self { shard, change: GaugeChange::default() }
    }
}

impl Deref for LockedShard<'_> {
    type Target = Shard;

    #[inline]
    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl DerefMut for LockedShard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}

impl Drop for LockedShard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.change = self.shard.change();
    }
}

/// Several locked shards. The metrics are updated when all are unlocked.
pub(super) struct LockedShards<'a> {
    /// How many shards there are.
    all: usize,
    shards: Vec<(usize, Option<MutexGuard<'a, Shard>>)>,
}

impl Drop for LockedShards<'_> {
    fn drop(&mut self) {
        let changes = self.shards.iter_mut().filter_map(|(_, shard)| Some(shard.as_mut()?.change()));
        let change = changes.fold(GaugeChange::default(), GaugeChange::and);
        self.shards.clear();
        drop(change);
    }
}

impl<'a> LockedShards<'a> {
    /// Locks these of `all` shards in ascending order, so that two calls never wait for each other.
    pub(super) fn new(
        shards: impl Iterator<Item = usize>,
        all: usize,
        lock: impl Fn(usize) -> MutexGuard<'a, Shard>,
    ) -> Self {
        // The guards are added in place, because a list of their own would be one more allocation in each call.
        let mut shards: Vec<_> = shards.map(|shard| (shard, None)).collect();
        shards.sort_unstable_by_key(|(shard, _)| *shard);
        shards.dedup_by_key(|(shard, _)| *shard);
        for (shard, guard) in &mut shards {
            *guard = Some(lock(*shard));
        }
        Self { all, shards }
    }
}

impl LockedShards<'_> {
    fn find(&mut self, hash: u64, id: TallyId<'_>) -> Option<&mut Tally> {
        self.shard(hash)?.find(hash, id)
    }

    /// See [`Shard::look`].
    pub(super) fn look<'t>(
        &'t mut self,
        hash: u64,
        id: TallyId<'_>,
        now_us: u64,
        unstored: &'t mut Option<Tally>,
    ) -> &'t mut Tally {
        match self.shard(hash) {
            Some(shard) => shard.look(hash, id, now_us, unstored),
            None => unstored.insert(Tally::new(id.group.cells())),
        }
    }

    pub(super) fn insert_missing(&mut self, ids: &[(TallyId<'_>, u64)], now_us: u64) -> Result<(), BackendError> {
        // When the memory is full, an inserted tally may replace another of this call. The second round sweeps other
        // buckets.
        for _ in 0..2 {
            let mut are_known = true;
            for &(id, hash) in ids {
                if let Some(shard) = self.shard(hash) {
                    let (place, trace) = shard.place_and_trace(hash, id);
                    are_known &= matches!(place, TallyPlace::Known(_));
                    place.tally(now_us)?.of(id.group, Left { trace, hash, now_us }).keep(now_us);
                }
            }
            if are_known || ids.iter().all(|&(id, hash)| self.find(hash, id).is_some()) {
                return Ok(());
            }
        }
        Err(BackendError::new("memory: a call has more subjects than there is room for; raise `max_subjects`"))
    }

    /// Asks all rules of all subjects. A tally may move the time forward.
    pub(super) fn ask(&mut self, ids: &[(TallyId<'_>, u64)], call: Call<'_>, now_us: &mut u64) -> Outcome {
        let mut builder = OutcomeBuilder::new();
        let mut first = 0;
        for (index, &(id, hash)) in ids.iter().enumerate() {
            // Only a peek meets a subject without a tally, and does not insert one.
            let mut unstored = None;
            let tally = self.look(hash, id, *now_us, &mut unstored);
            *now_us = tally.settle_time(id.group, *now_us);
            tally.ask(id.group, first, call.needs_at(index), *now_us, &mut builder);
            first += id.group.rules.len();
        }
        builder.build()
    }

    /// Whether a denial is early: all rules of all subjects would admit the call without what others have left.
    pub(super) fn is_early(&mut self, ids: &[(TallyId<'_>, u64)], call: Call<'_>, now_us: u64) -> bool {
        let mut all = |tells: &dyn Fn(usize, &RuleGroup, &Tally) -> bool| {
            ids.iter()
                .enumerate()
                .all(|(index, &(id, hash))| self.find(hash, id).is_some_and(|tally| tells(index, id.group, tally)))
        };
        !all(&|_, _, tally| !tally.counts_others())
            && all(&|index, group, tally| tally.admits_without_others(group, call.needs_at(index), now_us))
    }

    fn shard(&mut self, hash: u64) -> Option<&mut Shard> {
        let shard = shard_of(hash, self.all);
        self.shards.iter_mut().find(|(locked, _)| *locked == shard)?.1.as_deref_mut()
    }
}

/// Returns which of so many shards has the subject with this hash.
#[allow(clippy::cast_possible_truncation, reason = "only some bits of the hash are wanted")]
#[inline]
pub(super) fn shard_of(hash: u64, all: usize) -> usize {
    // The tables of the shards use other bits: the lowest ones and the seven highest.
    (hash >> 40) as usize & (all - 1)
}
