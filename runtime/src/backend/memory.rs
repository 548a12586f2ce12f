//! Tallies in this process.

mod ballot;
mod cell;
mod penalty;
mod shard;
mod tally;
mod wait;

use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;

use self::ballot::Ballot;
use self::shard::Shard;
use self::tally::Tally;
use super::{Answer, Request, Verdict};
use crate::clock::Clock;
use crate::key::Key;
use crate::policy::group::Group;
use crate::{Outage, Policy};

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
        match (request.policy.groups(), request.keys) {
            ([group], [key]) => self.decide_one(request, group, key),
            _ => self.decide_several(request),
        }
    }

    fn decide_one(&self, request: Request<'_>, group: &Group, key: &Key) -> Result<Answer, Outage> {
        let mut shard = self.lock(self.shard_of(key));
        // Read under the lock, so that hits of one subject are in order.
        let now_us = self.clock.now_us();
        let tally = shard.tally(key, request.policy, 0, now_us)?;
        let mut ballot = Ballot::default();
        ask(tally, group, 0, request.cost, now_us, &mut ballot);
        let verdict = ballot.verdict();
        settle(tally, group, verdict, request, now_us);
        let mut standings = Vec::new();
        if request.report && !is_ban(verdict) {
            tally.report(&group.rules, now_us, &mut standings);
        }
        Ok(Answer { verdict, standings, at_us: now_us })
    }

    fn decide_several(&self, request: Request<'_>) -> Result<Answer, Outage> {
        let Request { policy, keys, cost, .. } = request;
        let mut locked = self.lock_all(keys);
        let now_us = self.clock.now_us();
        let (mut ballot, mut first) = (Ballot::default(), 0);
        for (index, (group, key)) in policy.groups().iter().zip(keys).enumerate() {
            ask(locked.tally(self.shard_of(key), key, policy, index, now_us)?, group, first, cost, now_us, &mut ballot);
            first += group.rules.len();
            if ballot.is_banned() {
                break;
            }
        }
        let verdict = ballot.verdict();
        let mut standings = Vec::new();
        for (index, (group, key)) in policy.groups().iter().zip(keys).enumerate() {
            let tally = locked.tally(self.shard_of(key), key, policy, index, now_us)?;
            settle(tally, group, verdict, request, now_us);
            if request.report && !is_ban(verdict) {
                tally.report(&group.rules, now_us, &mut standings);
            }
        }
        Ok(Answer { verdict, standings, at_us: now_us })
    }

    /// Takes back the hits of a call that was admitted then, from every tally that still has them.
    pub(crate) fn refund(&self, request: Request<'_>, admitted_us: u64) -> bool {
        let mut given = false;
        for (group, key) in request.policy.groups().iter().zip(request.keys) {
            let mut shard = self.lock(self.shard_of(key));
            let now_us = self.clock.now_us();
            if let Some(tally) = shard.known(key) {
                given |= tally.refund(group, request.cost, admitted_us, now_us);
            }
        }
        given
    }

    /// Forgets the tallies of these subjects.
    pub(crate) fn reset(&self, keys: &[Key]) {
        for key in keys {
            self.lock(self.shard_of(key)).remove(key);
        }
    }

    /// Bans a subject for that long, or ends its ban.
    pub(crate) fn ban(&self, policy: &Policy, group: &Group, key: &Key, duration_us: u64) -> Result<(), Outage> {
        let mut shard = self.lock(self.shard_of(key));
        let now_us = self.clock.now_us();
        shard.tally(key, policy, 0, now_us)?.ban(group, duration_us, now_us);
        Ok(())
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        // A panic elsewhere under the lock leaves tallies that are still valid.
        self.shards[shard].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks every shard that these keys are in, in their order: whoever locks several never waits for himself.
    fn lock_all(&self, keys: &[Key]) -> Locked<'_> {
        let mut shards: Vec<_> = keys.iter().map(|key| self.shard_of(key)).collect();
        shards.sort_unstable();
        shards.dedup();
        Locked(shards.into_iter().map(|shard| (shard, self.lock(shard))).collect())
    }

    #[allow(clippy::cast_possible_truncation, reason = "only some bits of the hash are wanted")]
    fn shard_of(&self, key: &Key) -> usize {
        // Not the bits that the maps inside the shards use: the lowest ones and the seven highest.
        (self.hasher.hash_one(key.as_str()) >> 40) as usize & (SHARDS - 1)
    }
}

/// Several shards, locked.
struct Locked<'a>(Vec<(usize, MutexGuard<'a, Shard>)>);

impl Locked<'_> {
    fn tally(
        &mut self,
        shard: usize,
        key: &Key,
        policy: &Policy,
        group: usize,
        now_us: u64,
    ) -> Result<&mut Tally, Outage> {
        let found = self.0.iter_mut().find(|(locked, _)| *locked == shard);
        let (_, shard) = found.ok_or_else(|| Outage::new("memory: a tally's shard is not locked"))?;
        shard.tally(key, policy, group, now_us)
    }
}

fn ask(tally: &mut Tally, group: &Group, first: usize, cost: u64, now_us: u64, ballot: &mut Ballot) {
    tally.forget_future(now_us);
    tally.ask(group, first, cost, now_us, ballot);
}

/// A ban is all there is to say: no rule was asked.
fn is_ban(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Banned { .. })
}

/// Counts the call if it was admitted, and towards a ban if it was denied.
fn settle(tally: &mut Tally, group: &Group, verdict: Verdict, request: Request<'_>, now_us: u64) {
    match verdict {
        _ if request.peek => {}
        Verdict::Admitted if request.cost > 0 => tally.charge(group, request.cost, now_us),
        Verdict::Denied { .. } => tally.deny(group, now_us),
        _ => {}
    }
}
