//! Remembers denials in this process, so that a flood of abusive calls does not reach the storage.

use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::quality::RandomState;
use indexmap::IndexMap;

use crate::Policy;
use crate::backend::{Request, Verdict, as_us};
use crate::key::Key;

/// Keys are spread over this many locks; a power of two.
const SHARDS: usize = 16;

/// The most denials remembered under one lock, some 300 bytes each.
const MOST_PER_SHARD: usize = 1024;

/// How many denials a new one looks at for one that is over.
const SWEPT: usize = 4;

/// Once a denial has been remembered for its time, one caller asks again. This long it may take, and the others go by
/// what is known.
const RENEWAL_US: u64 = 50_000;

/// The denials that this process knows to hold for a while.
pub(crate) struct Denials {
    longest_us: u64,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Default)]
struct Shard {
    denials: IndexMap<Key, Known, RandomState>,
    /// Where to go on looking for denials that are over.
    swept: usize,
}

/// One denial.
struct Known {
    policy: Policy,
    /// Stands for the keys beside the first.
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
        (!longest.is_zero()).then(|| Self { longest_us: as_us(longest), hasher: RandomState::default(), shards })
    }

    /// Returns what a remembered denial says of the same call, or of one that costs more.
    pub(crate) fn recall(&self, request: &Request<'_>, now_us: u64) -> Option<Verdict> {
        let key = request.keys.first().filter(|_| is_remembered(request) && !request.report)?;
        let mut shard = self.lock(key);
        let known = shard.denials.get_mut(key)?;
        // A clock that was set back knows nothing of when a denial ends.
        if now_us >= known.over_us || now_us < known.answered_us {
            shard.denials.swap_remove(key);
            return None;
        }
        if !known.is_about(request, self.others(request)) {
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
    pub(crate) fn learn(&self, request: &Request<'_>, verdict: Verdict, asked_us: u64, now_us: u64) {
        let Some(key) = request.keys.first().filter(|_| is_remembered(request)) else { return };
        match verdict {
            // A policy whose denials are remembered bans nobody.
            Verdict::Admitted | Verdict::Banned { .. } => self.forget(key),
            Verdict::Denied { rule, retry_after } => {
                // It was decided some time after it was asked. Counted from there, none lasts too long.
                let over_us = retry_after.map_or(u64::MAX, |retry_after| asked_us.saturating_add(as_us(retry_after)));
                let known = Known {
                    policy: request.policy.clone(),
                    others: self.others(request),
                    cost: request.cost,
                    rule,
                    retry_after,
                    answered_us: now_us,
                    until_us: over_us.min(asked_us.saturating_add(self.longest_us)),
                    over_us,
                };
                self.lock(key).remember(*key, known, now_us);
            }
        }
    }

    /// Forgets what is known of these keys.
    pub(crate) fn forget_all(&self, keys: &[Key]) {
        for key in keys {
            self.forget(key);
        }
    }

    fn forget(&self, key: &Key) {
        self.lock(key).denials.swap_remove(key);
    }

    fn others(&self, request: &Request<'_>) -> u64 {
        match request.keys {
            [] | [_] => 0,
            [_, others @ ..] => self.hasher.hash_one(others),
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "only some bits of the hash are wanted")]
    fn lock(&self, key: &Key) -> MutexGuard<'_, Shard> {
        let shard = (self.hasher.hash_one(key) >> 40) as usize & (SHARDS - 1);
        // A panic elsewhere under the lock leaves denials that are still true.
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_remembered(request: &Request<'_>) -> bool {
    !request.peek && request.policy.remembers_denials()
}

impl Known {
    fn is_about(&self, request: &Request<'_>, others: u64) -> bool {
        request.cost >= self.cost && others == self.others && request.policy.has_rules_of(&self.policy)
    }
}

impl Shard {
    fn remember(&mut self, key: Key, known: Known, now_us: u64) {
        if known.until_us <= now_us {
            return;
        }
        if !self.denials.contains_key(&key) {
            self.make_room(now_us);
        }
        self.denials.insert(key, known);
    }

    /// Removes the first of a few denials that is over; where there is no room, one that is not.
    fn make_room(&mut self, now_us: u64) {
        for _ in 0..SWEPT {
            self.swept = if self.swept < self.denials.len() { self.swept } else { 0 };
            if self.denials.get_index(self.swept).is_some_and(|(_, known)| known.until_us <= now_us) {
                self.denials.swap_remove_index(self.swept);
                return;
            }
            self.swept += 1;
        }
        if self.denials.len() >= MOST_PER_SHARD {
            self.denials.swap_remove_index(self.swept % MOST_PER_SHARD);
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
