//! Tallies in this process.

mod ballot;
mod cell;
mod penalty;
mod shard;
mod tally;
mod wait;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;

use self::ballot::Ballot;
use self::shard::Shard;
use self::tally::Tally;
use super::{Answer, Name, Request, Verdict};
use crate::Outage;
use crate::clock::Clock;
use crate::policy::group::Group;

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
    /// Starts without tallies; of more than `max_subjects` at once the least busy are forgotten.
    pub(crate) fn new(clock: Clock, max_subjects: usize) -> Self {
        let shards = 1 << (max_subjects / SHARD_SUBJECTS).clamp(1, SHARDS).ilog2();
        let shard = |_| Padded(Mutex::new(Shard::new(max_subjects / shards)));
        Self { clock, seed: RandomState::default(), shards: (0..shards).map(shard).collect() }
    }

    /// Decides a call that wants to know no more than whether to go on.
    #[inline]
    pub(crate) fn verdict(&self, request: Request<'_>) -> Result<Verdict, Outage> {
        match (request.policy.groups(), request.subjects) {
            ([group], [subject]) if !request.peek => {
                self.verdict_on_one(request, Name { policy: request.policy, index: 0, group, subject })
            }
            _ => self.decide(request).map(|answer| answer.verdict),
        }
    }

    #[inline]
    fn verdict_on_one(&self, request: Request<'_>, name: Name<'_>) -> Result<Verdict, Outage> {
        let hash = name.hash(&self.seed);
        let mut shard = self.lock(self.shard_of(hash));
        // Read under the lock, so that hits of one subject are in order.
        let now_us = self.clock.now_us();
        let tally = shard.tally(hash, name, now_us)?;
        let mut ballot = Ballot::default();
        ask(tally, name.group, 0, request.cost, now_us, &mut ballot);
        let verdict = ballot.verdict();
        settle(tally, name.group, verdict, request, now_us);
        Ok(verdict)
    }

    /// Decides a call, whatever it asks.
    pub(crate) fn decide(&self, request: Request<'_>) -> Result<Answer, Outage> {
        let names: Vec<_> = request.names().map(|name| (name, name.hash(&self.seed))).collect();
        let mut locked = self.lock_all(names.iter().map(|(_, hash)| self.shard_of(*hash)).collect());
        let now_us = self.clock.now_us();
        if !request.peek {
            locked.make_known(&names, now_us)?;
        }
        let (mut ballot, mut first) = (Ballot::default(), 0);
        for &(name, hash) in &names {
            // Only a look comes by subjects that are not known, and leaves them so.
            let mut unknown = None;
            let tally = locked.known(hash, name).unwrap_or_else(|| unknown.insert(Tally::new(name.group)));
            ask(tally, name.group, first, request.cost, now_us, &mut ballot);
            first += name.group.rules.len();
            if ballot.is_banned() {
                break;
            }
        }
        let verdict = ballot.verdict();
        let mut standings = Vec::new();
        for &(name, hash) in &names {
            let mut unknown = None;
            let tally = locked.known(hash, name).unwrap_or_else(|| unknown.insert(Tally::new(name.group)));
            settle(tally, name.group, verdict, request, now_us);
            if request.report && !is_ban(verdict) {
                tally.report(name.group, now_us, &mut standings);
            }
        }
        Ok(Answer { verdict, standings, at_us: now_us })
    }

    /// Takes back the hits of a call that was admitted then, from every tally that still has them.
    pub(crate) fn refund(&self, request: Request<'_>, admitted_us: u64) -> bool {
        let mut given = false;
        for name in request.names() {
            let hash = name.hash(&self.seed);
            let mut shard = self.lock(self.shard_of(hash));
            let now_us = self.clock.now_us();
            if let Some(tally) = shard.known(hash, name) {
                given |= tally.refund(name.group, request.cost, admitted_us, now_us);
            }
        }
        given
    }

    /// Forgets the tallies of such a call.
    pub(crate) fn reset(&self, request: Request<'_>) {
        for name in request.names() {
            let hash = name.hash(&self.seed);
            self.lock(self.shard_of(hash)).remove(hash, name);
        }
    }

    /// Bans a subject for that long, or ends its ban.
    pub(crate) fn ban(&self, name: Name<'_>, duration_us: u64) -> Result<(), Outage> {
        let hash = name.hash(&self.seed);
        let mut shard = self.lock(self.shard_of(hash));
        let now_us = self.clock.now_us();
        let tally = match duration_us {
            // Whom nobody knows is not banned.
            0 => shard.known(hash, name),
            _ => Some(shard.tally(hash, name, now_us)?),
        };
        if let Some(tally) = tally {
            tally.ban(name.group, duration_us, now_us);
        }
        Ok(())
    }

    #[inline]
    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        // A panic elsewhere under the lock leaves tallies that are still valid.
        self.shards[shard].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks all of these, in their order: whoever locks several never waits for himself.
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

/// Says how many tallies there are, and nothing of them.
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
    /// Returns the tally of that name and its hash, if there is one.
    fn known(&mut self, hash: u64, name: Name<'_>) -> Option<&mut Tally> {
        self.shard(hash)?.known(hash, name)
    }

    /// Sees to it that each of these names has a tally.
    fn make_known(&mut self, names: &[(Name<'_>, u64)], now_us: u64) -> Result<(), Outage> {
        // At the cap, one of them may take the place of another. The next time it is other places that are looked at.
        for _ in 0..2 {
            for &(name, hash) in names {
                if let Some(shard) = self.shard(hash) {
                    shard.tally(hash, name, now_us)?.keep(now_us);
                }
            }
            if names.iter().all(|&(name, hash)| self.known(hash, name).is_some()) {
                return Ok(());
            }
        }
        Err(Outage::new("memory: a call has more subjects than there is room for; raise `max_subjects`"))
    }

    fn shard(&mut self, hash: u64) -> Option<&mut Shard> {
        let shard = self.memory.shard_of(hash);
        self.shards.iter_mut().find(|(locked, _)| *locked == shard).map(|(_, shard)| &mut **shard)
    }
}

#[inline]
fn ask(tally: &mut Tally, group: &Group, first: usize, cost: u64, now_us: u64, ballot: &mut Ballot) {
    tally.forget_future(now_us);
    tally.ask(group, first, cost, now_us, ballot);
}

/// A ban is all there is to say: no rule was asked.
fn is_ban(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Banned { .. })
}

/// Counts the call if it was admitted, and towards a ban if it was denied.
#[inline]
fn settle(tally: &mut Tally, group: &Group, verdict: Verdict, request: Request<'_>, now_us: u64) {
    match verdict {
        _ if request.peek => {}
        Verdict::Admitted if request.cost > 0 => tally.charge(group, request.cost, now_us),
        Verdict::Denied { .. } => tally.deny(group, now_us),
        _ => {}
    }
}
