//! Tallies in this process.

mod ballot;
mod cell;
mod shard;
mod tally;
mod wait;

use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;

use self::ballot::Ballot;
use self::shard::Shard;
use super::{Answer, Request, Verdict};
use crate::Outage;
use crate::clock::Clock;

/// Subjects are spread over this many locks; a power of two.
const SHARDS: usize = 64;

/// Tallies in this process, decided under one lock per subject.
#[derive(Debug)]
pub(crate) struct Memory {
    clock: Clock,
    hasher: RandomState,
    shards: Box<[Padded]>,
}

/// A shard on cache lines of its own, so that threads on different shards do not slow each other down.
#[repr(align(128))]
#[derive(Debug)]
struct Padded(Mutex<Shard>);

impl Memory {
    /// Starts without tallies; of more than `max_subjects` at once the least busy are forgotten.
    pub(crate) fn new(clock: Clock, max_subjects: usize) -> Self {
        let hasher = RandomState::default();
        let shard = || Padded(Mutex::new(Shard::new(hasher.clone(), max_subjects.div_ceil(SHARDS))));
        let shards = (0..SHARDS).map(|_| shard()).collect();
        Self { clock, hasher, shards }
    }

    pub(crate) fn decide(&self, request: Request<'_>) -> Result<Answer, Outage> {
        let Request { policy, keys: [key], cost, report } = request else {
            return Err(Outage::new("memory: a request has one subject"));
        };
        let mut shard = self.lock(key.as_str());
        // Read under the lock, so that hits of one subject are in order.
        let now_us = self.clock.now_us();
        let tally = shard.tally(key.as_str(), policy, now_us)?;
        tally.forget_future(now_us);
        let mut ballot = Ballot::default();
        tally.ask(policy.rules(), 0, cost, now_us, &mut ballot);
        let verdict = ballot.verdict();
        if verdict == Verdict::Admitted && cost > 0 {
            tally.charge(policy.group(), policy.rules(), cost, now_us);
        }
        let mut standings = Vec::new();
        if report {
            tally.report(policy.rules(), now_us, &mut standings);
        }
        Ok(Answer { verdict, standings })
    }

    fn lock(&self, key: &str) -> MutexGuard<'_, Shard> {
        // A panic elsewhere under the lock leaves tallies that are still valid.
        self.shards[self.shard_of(key)].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[allow(clippy::cast_possible_truncation, reason = "only some bits of the hash are wanted")]
    fn shard_of(&self, key: &str) -> usize {
        // Not the bits that the maps inside the shards use: the lowest ones and the seven highest.
        (self.hasher.hash_one(key) >> 40) as usize & (SHARDS - 1)
    }
}
