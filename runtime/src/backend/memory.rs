//! Tallies in this process.

mod tally;

use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use foldhash::quality::RandomState;
use indexmap::IndexMap;
use tallygate_rules::MAX_PER;
use tokio::time::Instant;

use self::tally::Tally;
use super::{Reply, Request};

/// Subjects are spread over this many locks; a power of two.
const SHARDS: usize = 64;

/// How many tallies a new subject looks at for expired ones: more than it adds, so the expired never pile up.
const SWEPT_PER_NEW_SUBJECT: usize = 2;

/// Tallies in this process, decided under one lock per subject.
pub(crate) struct Memory {
    started: Instant,
    started_us: u64,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Default)]
struct Shard {
    tallies: IndexMap<Box<str>, Tally, RandomState>,
    swept: usize,
}

impl Memory {
    pub(crate) fn new() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let hasher = RandomState::default();
        Self {
            started: Instant::now(),
            // No earlier than the longest window, so that no window reaches before time zero.
            started_us: as_us(unix.max(MAX_PER)),
            hasher: hasher.clone(),
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new(hasher.clone()))).collect(),
        }
    }

    pub(crate) fn decide(&self, request: Request<'_>) -> Reply {
        let key = request.key.as_str();
        let shard = &self.shards[self.shard_of(key)];
        // A panic elsewhere under the lock leaves tallies that are still valid.
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that hits of one subject are in order.
        let now_us = self.now_us();
        shard.tally(key, now_us).decide(request, now_us)
    }

    fn now_us(&self) -> u64 {
        self.started_us + as_us(Instant::now().saturating_duration_since(self.started))
    }

    #[allow(clippy::cast_possible_truncation, reason = "only some bits of the hash are wanted")]
    fn shard_of(&self, key: &str) -> usize {
        // The highest bits: the maps inside the shards use the lowest ones, and the seven below these.
        (self.hasher.hash_one(key) >> 48) as usize & (SHARDS - 1)
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Shard {
    fn new(hasher: RandomState) -> Self {
        Self { tallies: IndexMap::with_hasher(hasher), swept: 0 }
    }

    fn tally(&mut self, key: &str, now_us: u64) -> &mut Tally {
        let index = self.tallies.get_index_of(key).unwrap_or_else(|| {
            self.sweep(now_us);
            self.tallies.insert_full(key.into(), Tally::default()).0
        });
        &mut self.tallies[index]
    }

    /// Looks at the next few tallies in turn and removes those that count no more.
    fn sweep(&mut self, now_us: u64) {
        for _ in 0..SWEPT_PER_NEW_SUBJECT {
            let at = if self.swept < self.tallies.len() { self.swept } else { 0 };
            match self.tallies.get_index(at) {
                Some((_, tally)) if tally.is_over(now_us) => _ = self.tallies.swap_remove_index(at),
                _ => self.swept = at + 1,
            }
        }
    }
}

/// Durations here are below 2^53 microseconds: the clock's, and rules' validated ones.
fn as_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
