//! Remembers denials in this process, so that a flood of abusive calls does not reach the storage.

use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::Policy;
use crate::backend::{Name, Request, Verdict, as_us};
use crate::broom::Broom;

/// Subjects are spread over this many locks; a power of two.
const SHARDS: usize = 16;

/// The most denials remembered under one lock, some 300 bytes each.
const MOST_PER_SHARD: usize = 1024;

/// How many places of the table a new denial looks at for one that is over.
const SWEPT: usize = 8;

/// Once a denial has been remembered for its time, one caller asks again. This long it may take, and the others go by
/// what is known.
const RENEWAL_US: u64 = 50_000;

/// The denials that this process knows to hold for a while.
pub(crate) struct Denials {
    longest_us: u64,
    seed: RandomState,
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Default)]
struct Shard {
    denials: HashTable<Known>,
    broom: Broom,
    /// When something was last reset or given back.
    forgotten_us: u64,
}

/// One denial.
struct Known {
    hash: u64,
    policy: Policy,
    /// The first of the request.
    subject: Box<str>,
    /// Stands for the other ones.
    others: u64,
    cost: u64,
    rule: usize,
    /// From `answered_us` on; `None` is never.
    retry_after: Option<Duration>,
    answered_us: u64,
    /// Until when nobody asks again.
    until_us: u64,
    /// When the call may be admitted.
    over_us: u64,
}

impl Denials {
    /// Remembers denials for at most that long; `None` if that is not at all.
    pub(crate) fn new(longest: Duration) -> Option<Self> {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        (!longest.is_zero()).then(|| Self { longest_us: as_us(longest), seed: RandomState::default(), shards })
    }

    /// Returns what a remembered denial says of the same call, or of one that costs more.
    pub(crate) fn recall(&self, request: Request<'_>, now_us: u64) -> Option<Verdict> {
        let name = first_name(request).filter(|_| !request.report)?;
        let hash = name.hash(&self.seed);
        let mut shard = self.lock(hash);
        let mut found = shard.denials.find_entry(hash, |known| known.is_of(name)).ok()?;
        let known = found.get_mut();
        if now_us >= known.over_us {
            found.remove();
            return None;
        }
        // Who read the clock before the answer came asked before it, too.
        if now_us < known.answered_us || !known.is_about(request, self.others(request)) {
            return None;
        }
        if now_us >= known.until_us {
            known.until_us = now_us.saturating_add(RENEWAL_US);
            return None;
        }
        let elapsed = Duration::from_micros(now_us - known.answered_us);
        let retry_after = known.retry_after.map(|retry_after| retry_after.saturating_sub(elapsed));
        Some(Verdict::Denied { rule: known.rule, retry_after })
    }

    /// Takes note of an answer to a request that was made at `asked_us`.
    pub(crate) fn learn(&self, request: Request<'_>, verdict: Verdict, asked_us: u64, now_us: u64) {
        let Some(name) = first_name(request) else { return };
        match verdict {
            // A policy whose denials are remembered bans nobody.
            Verdict::Admitted | Verdict::Banned { .. } => drop(self.forget(name)),
            Verdict::Denied { rule, retry_after } => {
                // It was decided some time after it was asked. Counted from there, none lasts too long.
                let over_us = retry_after.map_or(u64::MAX, |retry_after| asked_us.saturating_add(as_us(retry_after)));
                let known = Known {
                    hash: name.hash(&self.seed),
                    policy: request.policy.clone(),
                    subject: (**name.subject).into(),
                    others: self.others(request),
                    cost: request.cost,
                    rule,
                    retry_after,
                    answered_us: now_us,
                    until_us: over_us.min(asked_us.saturating_add(self.longest_us)),
                    over_us,
                };
                let mut shard = self.lock(known.hash);
                // What was asked before somebody reset the subject says nothing of it as it is now.
                if asked_us > shard.forgotten_us {
                    shard.remember(name, known, now_us);
                }
            }
        }
    }

    /// Forgets what is known of such a call, answers that are still under way included.
    pub(crate) fn forget_all(&self, request: Request<'_>, now_us: u64) {
        if let Some(name) = request.names().next() {
            self.forget(name).forgotten_us = now_us;
        }
    }

    fn forget(&self, name: Name<'_>) -> MutexGuard<'_, Shard> {
        let hash = name.hash(&self.seed);
        let mut shard = self.lock(hash);
        if let Ok(known) = shard.denials.find_entry(hash, |known| known.is_of(name)) {
            known.remove();
        }
        shard
    }

    fn others(&self, request: Request<'_>) -> u64 {
        match request.subjects {
            [] | [_] => 0,
            [_, others @ ..] => self.seed.hash_one(others),
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "only some bits of the hash are wanted")]
    fn lock(&self, hash: u64) -> MutexGuard<'_, Shard> {
        let shard = (hash >> 40) as usize & (SHARDS - 1);
        // A panic elsewhere under the lock leaves denials that are still true.
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the denials of such a call are remembered by, if they are.
fn first_name(request: Request<'_>) -> Option<Name<'_>> {
    request.names().next().filter(|_| !request.peek && request.policy.remembers_denials())
}

impl Known {
    fn is_of(&self, name: Name<'_>) -> bool {
        name.is(&self.policy, 0, &self.subject)
    }

    fn is_about(&self, request: Request<'_>, others: u64) -> bool {
        request.cost >= self.cost && others == self.others && request.policy.has_rules_of(&self.policy)
    }
}

impl Shard {
    fn remember(&mut self, name: Name<'_>, known: Known, now_us: u64) {
        if known.until_us <= now_us {
            return;
        }
        if let Some(before) = self.denials.find_mut(known.hash, |known| known.is_of(name)) {
            *before = known;
            return;
        }
        self.make_room(now_us);
        self.denials.insert_unique(known.hash, known, |known| known.hash);
    }

    /// Removes the first of a few denials that is over; where there is no room, one that is not.
    fn make_room(&mut self, now_us: u64) {
        let Self { denials, broom, .. } = self;
        let swept = broom.sweep(denials, SWEPT, 1, |known| known.until_us <= now_us);
        if swept == 0 && denials.len() >= MOST_PER_SHARD {
            broom.sweep(denials, usize::MAX, 1, |_| true);
        }
    }
}

impl std::fmt::Debug for Denials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Denials").field("longest_us", &self.longest_us).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
