//! Tallies in this process.

mod ban_state;
mod cell;
mod outcome_builder;
mod shard;
mod tally;
mod wait;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;

use self::outcome_builder::OutcomeBuilder;
use self::shard::Shard;
use self::tally::Tally;
use crate::clock::Clock;
use crate::error::BackendError;
use crate::policy::RuleGroup;
use crate::store::answer::{self, Answer, Outcome};
use crate::store::request::Request;
use crate::store::tally_id::TallyId;

/// Subjects are spread over up to this many locks; a power of two.
const SHARDS: usize = 512;

/// The fewest subjects that are worth a lock of their own: so many spread evenly.
const SHARD_SUBJECTS: usize = 1024;

/// Tallies in this process, decided under one lock per subject.
pub(crate) struct Memory {
    clock: Clock,
    seed: RandomState,
    shards: Box<[Padded]>,
}

/// A shard on cache lines of its own, so that threads on different shards do not slow each other down.
#[repr(align(128))]
struct Padded(Mutex<Shard>);

impl Memory {
    /// Starts without tallies. Beyond `max_subjects` a new tally replaces an old one.
    pub(crate) fn new(clock: Clock, max_subjects: usize) -> Self {
        let shards = 1 << (max_subjects / SHARD_SUBJECTS).clamp(1, SHARDS).ilog2();
        let shard = |_| Padded(Mutex::new(Shard::new(max_subjects / shards)));
        Self { clock, seed: RandomState::default(), shards: (0..shards).map(shard).collect() }
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Decides a call that asks for nothing but the outcome.
    #[inline]
    pub(crate) fn outcome(&self, request: Request<'_>) -> Result<Outcome, BackendError> {
        match (request.policy.groups(), request.subjects) {
            ([group], [subject]) if !request.options.peek => {
                self.outcome_of_one(request, TallyId { policy: request.policy, index: 0, group, subject })
            }
            _ => self.decide(request).map(|answer| answer.outcome),
        }
    }

    /// Decides by the only tally of a call.
    #[inline]
    fn outcome_of_one(&self, request: Request<'_>, id: TallyId<'_>) -> Result<Outcome, BackendError> {
        let hash = id.hash(&self.seed);
        let mut shard = self.lock(self.shard_of(hash));
        // Read under the lock, so that hits of one subject are in order.
        let now_us = self.clock.now_us();
        let tally = shard.tally(hash, id, now_us)?;
        let mut builder = OutcomeBuilder::default();
        ask(tally, id.group, 0, request.options.cost, now_us, &mut builder);
        // In a policy of one group the places of its rules are their positions.
        let outcome = builder.build();
        charge(tally, id.group, outcome, request, now_us);
        Ok(outcome)
    }

    /// Decides any call.
    pub(crate) fn decide(&self, request: Request<'_>) -> Result<Answer, BackendError> {
        let options = request.options;
        let ids: Vec<_> = request.tally_ids().map(|id| (id, id.hash(&self.seed))).collect();
        let mut locked = self.lock_all(ids.iter().map(|(_, hash)| self.shard_of(*hash)).collect());
        let now_us = self.clock.now_us();
        if !options.peek {
            locked.insert_missing(&ids, now_us)?;
        }
        let mut builder = OutcomeBuilder::default();
        let mut first = 0;
        for &(id, hash) in &ids {
            // Only a peek meets subjects without a tally, and does not give them one.
            let mut empty = None;
            let tally = locked.find(hash, id).unwrap_or_else(|| empty.insert(Tally::new(id.group)));
            ask(tally, id.group, first, options.cost, now_us, &mut builder);
            first += id.group.rules.len();
        }
        let outcome = builder.build();
        let mut quotas = Vec::new();
        for &(id, hash) in &ids {
            let mut empty = None;
            let tally = locked.find(hash, id).unwrap_or_else(|| empty.insert(Tally::new(id.group)));
            charge(tally, id.group, outcome, request, now_us);
            if options.report {
                tally.report(id.group, now_us, &mut quotas);
            }
        }
        let outcome = outcome.with_position(request.policy);
        Ok(Answer { outcome, report: answer::report(request.policy, quotas), at_us: now_us })
    }

    /// Removes the hits of a call that was admitted then, from every rule in which they still count; returns whether there
    /// was one.
    pub(crate) fn refund(&self, request: Request<'_>, admitted_us: u64) -> bool {
        let mut refunded = false;
        for id in request.tally_ids() {
            let hash = id.hash(&self.seed);
            let mut shard = self.lock(self.shard_of(hash));
            let now_us = self.clock.now_us();
            if let Some(tally) = shard.find(hash, id) {
                refunded |= tally.refund(id.group, request.options.cost, admitted_us, now_us);
            }
        }
        refunded
    }

    /// Removes the tallies of such a call.
    pub(crate) fn reset(&self, request: Request<'_>) {
        for id in request.tally_ids() {
            let hash = id.hash(&self.seed);
            self.lock(self.shard_of(hash)).remove(hash, id);
        }
    }

    /// Bans a subject for that long, or ends its ban.
    pub(crate) fn ban(&self, id: TallyId<'_>, duration_us: u64) -> Result<(), BackendError> {
        let hash = id.hash(&self.seed);
        let mut shard = self.lock(self.shard_of(hash));
        let now_us = self.clock.now_us();
        let tally = match duration_us {
            // A subject without a tally has no ban to end.
            0 => shard.find(hash, id),
            _ => Some(shard.tally(hash, id, now_us)?),
        };
        if let Some(tally) = tally {
            tally.ban(id.group, duration_us, now_us);
        }
        Ok(())
    }

    #[inline]
    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        // A panic elsewhere under the lock leaves tallies that are still valid.
        self.shards[shard].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks all of these in ascending order, so that two calls never wait for each other.
    fn lock_all(&self, mut shards: Vec<usize>) -> Locked<'_> {
        shards.sort_unstable();
        shards.dedup();
        Locked { memory: self, shards: shards.into_iter().map(|shard| (shard, self.lock(shard))).collect() }
    }

    #[allow(clippy::cast_possible_truncation, reason = "only some bits of the hash are wanted")]
    #[inline]
    fn shard_of(&self, hash: u64) -> usize {
        // Not the bits that the tables inside the shards use: the lowest ones and the seven highest.
        (hash >> 40) as usize & (self.shards.len() - 1)
    }
}

/// Shows how many tallies there are, and nothing of them.
impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tallies: usize = (0..self.shards.len()).map(|shard| self.lock(shard).len()).sum();
        f.debug_struct("Memory").field("tallies", &tallies).finish_non_exhaustive()
    }
}

/// Several shards, locked.
struct Locked<'a> {
    memory: &'a Memory,
    shards: Vec<(usize, MutexGuard<'a, Shard>)>,
}

impl Locked<'_> {
    /// Returns the tally of that identity and hash, if there is one.
    fn find(&mut self, hash: u64, id: TallyId<'_>) -> Option<&mut Tally> {
        self.shard(hash)?.find(hash, id)
    }

    /// Inserts the tallies that are missing.
    fn insert_missing(&mut self, ids: &[(TallyId<'_>, u64)], now_us: u64) -> Result<(), BackendError> {
        // At the cap, one of them may replace another. The second round sweeps other buckets.
        for _ in 0..2 {
            for &(id, hash) in ids {
                if let Some(shard) = self.shard(hash) {
                    shard.tally(hash, id, now_us)?.keep(now_us);
                }
            }
            if ids.iter().all(|&(id, hash)| self.find(hash, id).is_some()) {
                return Ok(());
            }
        }
        Err(BackendError::new("memory: a call has more subjects than there is room for; raise `max_subjects`"))
    }

    fn shard(&mut self, hash: u64) -> Option<&mut Shard> {
        let shard = self.memory.shard_of(hash);
        self.shards.iter_mut().find(|(locked, _)| *locked == shard).map(|(_, shard)| &mut **shard)
    }
}

#[inline]
fn ask(tally: &mut Tally, group: &RuleGroup, first: usize, cost: u64, now_us: u64, builder: &mut OutcomeBuilder) {
    tally.forget_future(now_us);
    tally.ask(group, first, cost, now_us, builder);
}

/// Counts the call if it was admitted, and towards a ban if it was denied. A call of a banned subject counts nowhere.
#[inline]
fn charge(tally: &mut Tally, group: &RuleGroup, outcome: Outcome, request: Request<'_>, now_us: u64) {
    let options = request.options;
    match outcome {
        _ if options.peek => {}
        Outcome::Admitted if options.cost > 0 => tally.charge(group, options.cost, now_us),
        Outcome::Denied { .. } => tally.deny(group, now_us),
        _ => {}
    }
}
