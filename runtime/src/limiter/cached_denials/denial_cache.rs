//! Caches denials in this process, so that a flood of abusive calls does not reach the store.

use std::hash::BuildHasher;
use std::time::Duration;

use hashbrown::HashTable;

use crate::call::{Call, TallyId};
use crate::decision::Wait;
use crate::micros;
use crate::observe::opaque_debug;
use crate::policy::Policy;
use crate::population::{Inhabitant, Population};
use crate::store::Outcome;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, lock};
use crate::system::RandomState;

/// Subjects are spread over this many locks; a power of two.
const SHARDS: usize = 16;

/// The most denials cached under one lock, some 300 bytes each.
const MOST_PER_SHARD: usize = 1024;

/// How many places of the table a new denial searches for one that has ended.
const SWEPT: usize = 8;

/// When a cached denial is due, one caller asks the store again. Meanwhile, for at most this long, the others get the
/// cached denial.
const RENEWAL_US: u64 = 50_000;

/// How many times of changes there are; a power of two. Subjects may share one.
const CHANGES: usize = 1024;

pub(super) struct DenialCache {
    longest_us: u64,
    seed: RandomState,
    shards: Box<[Mutex<DenialShard>]>,
    /// When room was last made for a subject, also for one that others than its main subject share.
    changes_us: Box<[AtomicU64]>,
}

#[derive(Default)]
struct DenialShard {
    denials: HashTable<CachedDenial>,
    population: Population,
}

struct CachedDenial {
    hash: u64,
    inhabitant: Inhabitant,
    policy: Policy,
    /// The first subject of the call.
    subject: Box<str>,
    /// A hash of the other subjects.
    others_hash: u64,
    /// The hash of the subject whose rule has denied the call.
    denying_hash: u64,
    /// What the denied call cost for each of its subjects.
    costs: SubjectCosts,
    rule: u32,
    /// Counted from `answered_us`.
    retry_after: Wait,
    asked_us: u64,
    answered_us: u64,
    /// When the store is asked again.
    due_us: u64,
    /// When the call may be admitted.
    ends_us: u64,
}

/// What a call costs for each of its subjects.
struct SubjectCosts {
    cost: u64,
    /// Empty without units.
    in_units: Box<[u64]>,
}

impl SubjectCosts {
    fn at(&self, index: usize) -> u64 {
        self.in_units.get(index).copied().unwrap_or(self.cost)
    }

    fn are_at_most(&self, other: impl Fn(usize) -> u64) -> bool {
        (0..self.in_units.len().max(1)).all(|index| self.at(index) <= other(index))
    }
}

impl DenialCache {
    /// Caches denials for at most `longest`; `None` if that is zero.
    pub(super) fn new(longest: Duration) -> Option<Self> {
        (!longest.is_zero()).then(|| Self {
            longest_us: micros::from_duration(longest),
            seed: RandomState::default(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            changes_us: (0..CHANGES).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// Returns the cached denial of the same call, or of a cheaper one.
    pub(super) fn get(&self, call: Call<'_>, now_us: u64) -> Option<Outcome> {
        let options = call.options;
        let id = first_id(call).filter(|_| !options.report || options.report_is_optional)?;
        let hash = id.hash(&self.seed);
        let mut shard = self.lock(hash);
        // Several denials may answer a call with units. One that is due must not hide another.
        let mut due = None;
        for cached in shard.denials.iter_hash_mut(hash) {
            let is_meant = cached.matches(id) && cached.costs.are_at_most(|index| call.needs_at(index));
            // An answer may be newer than the clock reading of this caller, which therefore asks by itself.
            if !is_meant || now_us < cached.answered_us || !cached.answers(call, self.others_hash(call)) {
                continue;
            }
            // By the rule of the denial, whatever room there is by others.
            if self.change_us(cached.denying_hash).load(Ordering::Acquire) >= cached.asked_us {
                continue;
            }
            if now_us < cached.due_us {
                let retry_after = cached.retry_after.after(now_us - cached.answered_us);
                return Some(Outcome::Denied { rule: cached.rule, retry_after });
            }
            due = Some(cached);
        }
        match due {
            Some(cached) if now_us < cached.ends_us => {
                cached.due_us = now_us.saturating_add(RENEWAL_US).min(cached.ends_us);
            }
            Some(_) => shard.remove(hash, |cached| cached.matches(id) && cached.ends_us <= now_us),
            None => {}
        }
        None
    }

    /// Records the answer to a call that was sent at `asked_us`.
    pub(super) fn record(&self, call: Call<'_>, outcome: Outcome, asked_us: u64, now_us: u64) {
        let Some(id) = first_id(call) else { return };
        match outcome {
            // A pause says nothing about the rules.
            Outcome::Paused { .. } | Outcome::Probing { .. } => {}
            // A policy with a ban caches no denials.
            Outcome::Admitted | Outcome::Banned { .. } => {
                let hash = id.hash(&self.seed);
                // In a policy with units, a denial of a call that costs more in some unit is still right.
                self.lock(hash).remove(hash, |cached| {
                    let is_contradicted = || cached.costs.are_at_most(|index| call.needs_at(index));
                    cached.matches(id) && (call.costs.is_empty() || is_contradicted())
                });
            }
            Outcome::Denied { rule, retry_after } => {
                let group = call.policy.group_of(rule as usize);
                let Some(denying) = group.and_then(|group| call.tally_ids().nth(group)) else { return };
                // The store decided at some time after the question. Counted from the question, no denial lasts too
                // long.
                let ends_us = retry_after.ends_us(asked_us);
                let cached = CachedDenial {
                    hash: id.hash(&self.seed),
                    inhabitant: Inhabitant::of(&id.group.segment),
                    policy: call.policy.clone(),
                    subject: (**id.subject).into(),
                    others_hash: self.others_hash(call),
                    denying_hash: denying.hash(&self.seed),
                    costs: SubjectCosts {
                        cost: call.options.cost,
                        in_units: (0..call.costs.len()).map(|index| call.needs_at(index)).collect(),
                    },
                    rule,
                    retry_after,
                    asked_us,
                    answered_us: now_us,
                    due_us: ends_us.min(asked_us.saturating_add(self.longest_us)),
                    ends_us,
                };
                self.lock(cached.hash).insert(id, cached, now_us);
            }
        }
    }

    /// Lets no call be denied by rules on these subjects as they stood until now, whatever main subject it has.
    pub(super) fn invalidate<'a>(&self, ids: impl Iterator<Item = TallyId<'a>>, now_us: u64) {
        for id in ids {
            self.change_us(id.hash(&self.seed)).fetch_max(now_us, Ordering::AcqRel);
        }
    }

    /// When room was last made for a subject, or for another one that shares its place.
    #[allow(clippy::cast_possible_truncation, reason = "only some bits of the hash are wanted")]
    fn change_us(&self, hash: u64) -> &AtomicU64 {
        &self.changes_us[(hash >> 40) as usize & (CHANGES - 1)]
    }

    /// Removes the denials of calls like this, so that the next one asks the store.
    pub(super) fn forget(&self, call: Call<'_>) {
        if let Some(id) = call.tally_ids().next() {
            let hash = id.hash(&self.seed);
            self.lock(hash).remove(hash, |cached| cached.matches(id));
        }
    }

    fn others_hash(&self, call: Call<'_>) -> u64 {
        match call.subjects {
            [] | [_] => 0,
            [_, others @ ..] => self.seed.hash_one(others),
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "only some bits of the hash are wanted")]
    fn lock(&self, hash: u64) -> MutexGuard<'_, DenialShard> {
        let shard = (hash >> 40) as usize & (SHARDS - 1);
        lock(&self.shards[shard])
    }
}

/// The identity under which denials of the call are cached; `None` if they are not.
fn first_id(call: Call<'_>) -> Option<TallyId<'_>> {
    call.tally_ids().next().filter(|_| !call.options.peek && call.policy.caches_denials())
}

impl CachedDenial {
    fn matches(&self, id: TallyId<'_>) -> bool {
        **id.subject == *self.subject
            && self.policy.groups().first().is_some_and(|group| id.group.has_segment(&group.segment))
    }

    /// Whether it answers every call that the other denial answers. Of other subjects or rules, the newer one stays.
    fn replaces(&self, other: &Self) -> bool {
        self.others_hash != other.others_hash
            || !self.policy.has_rules_of(&other.policy)
            || self.costs.are_at_most(|index| other.costs.at(index))
    }

    fn answers(&self, call: Call<'_>, others_hash: u64) -> bool {
        others_hash == self.others_hash && call.policy.has_rules_of(&self.policy)
    }
}

impl DenialShard {
    /// Adds a denial. A subject has several only if each costs more than the others in some unit.
    fn insert(&mut self, id: TallyId<'_>, cached: CachedDenial, now_us: u64) {
        if cached.due_us <= now_us {
            return;
        }
        self.remove(cached.hash, |before| before.matches(id) && (before.due_us <= now_us || cached.replaces(before)));
        let answers = |before: &CachedDenial| before.matches(id) && before.replaces(&cached);
        if self.denials.find(cached.hash, answers).is_some() {
            return;
        }
        self.make_room(cached.inhabitant, now_us);
        self.population.add(cached.inhabitant);
        self.denials.insert_unique(cached.hash, cached, |cached| cached.hash);
    }

    fn remove(&mut self, hash: u64, is_meant: impl Fn(&CachedDenial) -> bool) {
        while let Ok(found) = self.denials.find_entry(hash, &is_meant) {
            let (removed, _) = found.remove();
            self.population.remove(removed.inhabitant);
        }
    }

    /// Removes the first due denial among a few. If there is none and the shard is full, removes one of the policy with
    /// the most denials.
    fn make_room(&mut self, policy: Inhabitant, now_us: u64) {
        let Self { denials, population, .. } = self;
        let due = |cached: &CachedDenial| (cached.due_us <= now_us).then_some(cached.inhabitant);
        if population.sweep(denials, SWEPT, 1, due) == 0 && denials.len() >= MOST_PER_SHARD {
            let most = population.most(policy);
            population.sweep(denials, usize::MAX, 1, |cached| (cached.inhabitant == most).then_some(most));
        }
    }
}

opaque_debug!(DenialCache { longest_us });

#[cfg(test)]
mod tests;
#[cfg(test)]
#[cfg(tallygate_shuttle)]
mod threads;
