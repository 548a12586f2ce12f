//! Tallies in this process.

mod counters;
mod leases;
mod locked;
mod log;
#[cfg(feature = "admin")]
mod scan;
mod shard;
mod tally;
#[cfg(test)]
#[cfg(tallygate_shuttle)]
mod threads;
mod trace;
mod units;

use std::time::Duration;

use arrayvec::ArrayVec;

use self::locked::{LockedShard, LockedShards, ShardPlace};
#[cfg(feature = "admin")]
pub(crate) use self::scan::ShardScan;
pub(crate) use self::shard::FreedTally;
use self::shard::Shard;
use self::tally::Tally;
use crate::algorithm::Quota;
use crate::call::{Call, StoredLease, TallyId};
use crate::clock::{self, Clock};
use crate::decision::{AdmittedAt, Recount, Remainder, Report, Wait};
use crate::error::BackendError;
use crate::observe::{count_early_denial, opaque_debug};
use crate::policy::{Policy, RuleGroup};
use crate::store::answer::{self, Answer, Outcome};
use crate::store::decider::tally_to_ban;
use crate::store::outcome_builder::OutcomeBuilder;
use crate::subject::SubjectKey;
use crate::sync::{Mutex, lock};
use crate::system::RandomState;

/// The most locks that subjects are spread over; a power of two. Each has a table of its own, and those of more locks leave the first
/// cache while there are few subjects: with 512, a call of one of 10,000 takes up to a quarter more time.
const SHARDS: usize = 64;

/// The fewest subjects for each lock: this many spread evenly.
const SHARD_SUBJECTS: usize = 1024;

/// The most tallies of a call for which nothing is allocated.
const FEW: usize = 4;

/// Tallies in this process. A lock guards the subjects of one shard.
pub(crate) struct Memory {
    clock: Clock,
    seed: RandomState,
    shards: Box<[Padded]>,
}

/// A shard in cache lines of its own, so that threads that use other shards do not slow each other down.
#[repr(align(128))]
struct Padded(Mutex<Shard>);

impl Memory {
    /// If there are `max_subjects` tallies, a new one replaces an old one.
    pub(crate) fn new(clock: Clock, max_subjects: usize) -> Self {
        let shards = 1 << (max_subjects / SHARD_SUBJECTS).clamp(1, SHARDS).ilog2();
        let shard = |_| Padded(Mutex::new(Shard::new(max_subjects / shards)));
        Self { clock, seed: RandomState::default(), shards: (0..shards).map(shard).collect() }
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Decides a plain call; `None` if the policy counts several subjects or concurrent calls, or if there is no room
    /// for a new subject.
    pub(crate) fn outcome(&self, policy: &Policy, subject: &SubjectKey, cost: u64) -> Option<Outcome> {
        self.outcome_at(policy, subject, cost, |_| {})
    }

    /// Decides as [`outcome`](Self::outcome) does, and tells `tell_us` the time of the decision in microseconds.
    #[inline]
    pub(crate) fn outcome_at(
        &self,
        policy: &Policy,
        subject: &SubjectKey,
        cost: u64,
        tell_us: impl FnOnce(u64),
    ) -> Option<Outcome> {
        let [group] = policy.groups() else { return None };
        let id = TallyId { group, subject };
        // In a policy of one group, a rule's place is its position.
        if group.is_windows || group.only_cell().is_some() {
            // Only two numbers are returned, because they stay in registers while the lock is released.
            let (wait, rule) = self.with_tally(id.hash(&self.seed), id, |tally, now_us| {
                tell_us(now_us);
                if !group.is_windows {
                    return (tally.decide_by_cell(group, cost, now_us), 0);
                }
                let now_us = tally.settle_time_of_windows(group, now_us);
                let wait = tally.decide_by_windows(group, cost, now_us);
                let rule = if wait.is_none() { 0 } else { tally.denied_by_window(group, cost, now_us) };
                (wait, rule)
            })?;
            Some(if wait.is_none() { Outcome::Admitted } else { Outcome::denied(rule, wait) })
        } else if group.lease_us.is_some() {
            None
        } else {
            self.with_tally(id.hash(&self.seed), id, |tally, now_us| {
                tell_us(now_us);
                tally.decide(group, cost, now_us)
            })
        }
    }

    /// Uses the tally of a subject, a new one if there is none; `None` if there is no room for a new one.
    #[inline]
    fn with_tally<T>(&self, hash: u64, id: TallyId<'_>, work: impl FnOnce(&mut Tally, u64) -> T) -> Option<T> {
        let mut shard = self.lock(self.shard_of(hash));
        // Looked up before the clock is read: the processor then does both at once, but not in the other order.
        let (place, _) = shard.place_and_trace(hash, id);
        // Read under the lock, so that the hits of one subject are in order.
        let now_us = self.clock.now_us();
        place.tally(now_us).ok().map(|tally| work(tally, now_us))
    }

    /// Decides a call of any subjects and units: all tallies count it, or none does.
    pub(crate) fn decide(&self, call: Call<'_>) -> Result<Answer, BackendError> {
        let mut ids = call.tally_ids();
        if let (Some(only), None) = (ids.next(), ids.next()) {
            return self.decide_only(only, call);
        }
        let hashed = call.tally_ids().map(|id| {
            let hash = id.hash(&self.seed);
            ((id, hash), ShardPlace::new(self.shard_of(hash)))
        });
        if call.subjects.len() <= FEW {
            // Not by `unzip`, which would move both.
            let (mut ids, mut places) = (ArrayVec::<_, FEW>::new(), ArrayVec::<_, FEW>::new());
            for (id, place) in hashed {
                ids.push(id);
                places.push(place);
            }
            return self.decide_in(call, &ids, &mut places);
        }
        let (ids, mut places): (Vec<_>, Vec<_>) = hashed.unzip();
        self.decide_in(call, &ids, &mut places)
    }

    /// Decides a call of one subject.
    fn decide_only(&self, id: TallyId<'_>, call: Call<'_>) -> Result<Answer, BackendError> {
        let (mut shard, hash, now_us) = self.lock_of(id);
        let mut unstored = None;
        let tally = if call.options.peek {
            shard.look(hash, id, now_us, &mut unstored)
        } else {
            let tally = shard.tally(hash, id, now_us)?;
            if !call.options.report && tally.has_room(id.group, call.needs_at(0), now_us) {
                tally.count(id.group, call.cost_at(0), now_us);
                return Ok(Answer::new(Outcome::Admitted, Report::default(), now_us));
            }
            tally
        };
        let now_us = tally.settle_time(id.group, now_us);
        let mut builder = OutcomeBuilder::new();
        tally.ask(id.group, 0, call.needs_at(0), now_us, &mut builder);
        let outcome = builder.build();
        count_if_early(outcome, call, || tally.is_early(id.group, call.needs_at(0), now_us));
        charge(tally, id.group, outcome, call, call.cost_at(0), now_us);
        let mut quotas = Vec::new();
        if call.options.report {
            tally.report(id.group, now_us, &mut quotas);
        }
        drop(shard);
        Ok(answer(call, outcome, quotas, now_us))
    }

    /// Decides a call of these tallies, each with its hash, whose shards are locked in these places.
    fn decide_in<'s>(
        &'s self,
        call: Call<'_>,
        ids: &[(TallyId<'_>, u64)],
        places: &mut [ShardPlace<'s>],
    ) -> Result<Answer, BackendError> {
        let options = call.options;
        let mut locked = LockedShards::new(ids, places, |shard| lock(&self.shards[shard].0));
        let mut now_us = self.clock.now_us();
        // Most calls are decided by windows alone, and admitted.
        if !options.report && !options.peek && locked.count_in_windows(call, now_us) {
            return Ok(Answer::new(Outcome::Admitted, Report::default(), now_us));
        }
        if !options.peek {
            locked.insert_missing(now_us)?;
        }
        let outcome = loop {
            let begun_us = now_us;
            let outcome = locked.ask(call, &mut now_us);
            // If a tally has moved the time forward, all subjects are decided as of the later time.
            if now_us == begun_us {
                break outcome;
            }
        };
        count_if_early(outcome, call, || locked.is_early(call, now_us));
        let mut quotas = Vec::new();
        for (index, (id, _)) in ids.iter().enumerate() {
            let mut unstored = None;
            let tally = locked.look(index, now_us, &mut unstored);
            charge(tally, id.group, outcome, call, call.cost_at(index), now_us);
            if options.report {
                tally.report(id.group, now_us, &mut quotas);
            }
        }
        Ok(answer(call, outcome, quotas, now_us))
    }

    /// See [`Decider::recount`](crate::store::Decider::recount).
    pub(crate) fn recount(&self, counted: Call<'_>, recount: &Recount, admitted: &AdmittedAt) -> bool {
        if let Recount::Leave(remainder) = recount {
            return self.leave(counted, *remainder, admitted);
        }
        let mut has_changed = false;
        for (index, id) in counted.tally_ids().enumerate() {
            let Some(costs) = recount.change_of(counted, index) else { continue };
            let (mut shard, hash, now_us) = self.lock_of(id);
            let admitted_us = admitted.us(index);
            let now_us = clock::settled(admitted_us, now_us);
            let (is_late, is_traced) = (costs.charged == 0 && costs.used > 0, shard.has_trace(now_us));
            let change = |tally: &mut Tally| {
                if is_late {
                    return tally.charge_late(id.group, costs, now_us);
                }
                tally.refund(id.group, costs, admitted_us, now_us, is_traced)
            };
            if is_late {
                // If there is no room, it is counted among what is left.
                let _ = shard.tally(hash, id, now_us);
            }
            if let Some(tally) = shard.find(hash, id) {
                has_changed |= change(tally);
            } else if is_late || is_traced && costs.beyond() > 0 {
                has_changed |= shard.change_left(hash, id, now_us, change);
            }
        }
        has_changed
    }

    fn leave(&self, counted: Call<'_>, remainder: Remainder, admitted: &AdmittedAt) -> bool {
        // A call that costs nothing of the unit is in no count.
        let Some(id) = counted.tally_ids().nth(remainder.group).filter(|_| counted.cost_at(remainder.group) > 0) else {
            return false;
        };
        let (mut shard, hash, now_us) = self.lock_of(id);
        let change = |tally: &mut Tally| tally.leave(id.group, remainder, admitted.us(remainder.group), now_us);
        if let Some(tally) = shard.find(hash, id) {
            return change(tally);
        }
        shard.has_trace(now_us) && shard.change_left(hash, id, now_us, change)
    }

    /// Decides a call of a concurrency limit alone, and takes its lease; `None` if there is no room for a new subject.
    pub(crate) fn lease(&self, id: TallyId<'_>) -> Option<Result<StoredLease, Wait>> {
        let hash = id.hash(&self.seed);
        let leased = self.with_tally(hash, id, |tally, now_us| tally.lease(id.group, now_us))?;
        Some(leased.map(|name| StoredLease { hash, name }))
    }

    /// Gives a lease back; returns what its tally counts, if anybody waits for a lease.
    pub(crate) fn give_back(&self, lease: StoredLease, is_awaited: impl FnOnce() -> bool) -> Option<FreedTally> {
        self.lock(self.shard_of(lease.hash)).give_back(lease, is_awaited)
    }

    /// Gives the leases of a call back.
    pub(crate) fn give_back_all(&self, call: Call<'_>) {
        let Some(name) = call.options.lease else { return };
        for id in call.tally_ids() {
            let (mut shard, hash, _) = self.lock_of(id);
            if let Some(tally) = shard.find(hash, id) {
                tally.give_back(name);
            }
        }
    }

    /// Removes the tallies of the call's subjects. Returns how long what is left in the trace may deny them; `None` if nothing is.
    pub(crate) fn reset(&self, call: Call<'_>) -> Option<Duration> {
        let resets = call.tally_ids().map(|id| {
            let (mut shard, hash, now_us) = self.lock_of(id);
            shard.remove(hash, id, now_us);
            shard.traced_for(hash, id, now_us)
        });
        resets.max().flatten()
    }

    /// Bans the main subject of the call for this time; 0 ends its ban. Returns how long what is left of replaced subjects may deny it
    /// by the rules of any unit.
    pub(crate) fn ban(&self, call: Call<'_>, duration: Duration) -> Result<Option<Duration>, BackendError> {
        let (id, duration_us) = tally_to_ban(call, duration)?;
        let (mut shard, hash, now_us) = self.lock_of(id);
        // A subject without a tally has no ban to end.
        if duration_us > 0 {
            shard.tally(hash, id, now_us)?;
        }
        // The trace may still have an earlier ban, which would hold again when the subject returns.
        shard.unban(hash, id, now_us);
        if let Some(tally) = shard.find(hash, id) {
            tally.ban(id.group, duration_us, now_us);
        }
        drop(shard);
        let main = call.tally_ids().filter(|other| other.group.label == id.group.label);
        Ok(main.filter_map(|id| self.traced_for(id)).max())
    }

    fn traced_for(&self, id: TallyId<'_>) -> Option<Duration> {
        let (mut shard, hash, now_us) = self.lock_of(id);
        shard.traced_for(hash, id, now_us)
    }

    /// Locks the shard of a tally. Also returns the hash of the tally, and the time, which is read under the lock.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "it has several callers, so that the compiler would not do it for refunds")]
    fn lock_of(&self, id: TallyId<'_>) -> (LockedShard<'_>, u64, u64) {
        let hash = id.hash(&self.seed);
        let shard = self.lock(self.shard_of(hash));
        (shard, hash, self.clock.now_us())
    }

    #[inline]
    fn lock(&self, shard: usize) -> LockedShard<'_> {
        LockedShard::new(lock(&self.shards[shard].0))
    }

    /// Returns which shard has the subject with this hash.
    #[allow(clippy::cast_possible_truncation, reason = "only some bits of the hash are wanted")]
    #[inline]
    fn shard_of(&self, hash: u64) -> usize {
        // The tables of the shards use other bits: the lowest ones and the seven highest.
        (hash >> 40) as usize & (self.shards.len() - 1)
    }
}

// Shows how many tallies there are, but no tally.
opaque_debug!(Memory, memory => {
    tallies: (0..memory.shards.len()).map(|shard| memory.lock(shard).len()).sum::<usize>()
});

/// Returns the answer to a call, with a report if it asks for one.
fn answer(call: Call<'_>, outcome: Outcome, quotas: Vec<Quota>, now_us: u64) -> Answer {
    let report = if call.options.report { answer::report(call.policy, 0, quotas) } else { Report::default() };
    Answer::new(outcome.with_position(call.policy), report, now_us)
}

/// Counts a denial that is final if it is early, which `is_early` says.
fn count_if_early(outcome: Outcome, call: Call<'_>, is_early: impl FnOnce() -> bool) {
    let is_final = !call.options.peek && !call.options.provisional;
    if matches!(outcome, Outcome::Denied { .. }) && is_final && is_early() {
        count_early_denial();
    }
}

/// Counts an admitted call, or a denial towards a ban. A call of a banned subject is not counted.
fn charge(tally: &mut Tally, group: &RuleGroup, outcome: Outcome, call: Call<'_>, cost: u64, now_us: u64) {
    let options = call.options;
    match outcome {
        _ if options.peek => {}
        Outcome::Admitted if group.lease_us.is_some() => {
            if let Some(name) = options.lease.filter(|_| options.cost > 0) {
                tally.take_lease(name, now_us);
            }
        }
        Outcome::Denied { .. } if group.lease_us.is_some() => {}
        Outcome::Admitted if cost > 0 => tally.charge(group, cost, now_us),
        // Also an early one: what others share may be the subject's own, and no flood may take a ban away.
        Outcome::Denied { .. } if !options.provisional => tally.deny(group, None, now_us),
        _ => {}
    }
}
