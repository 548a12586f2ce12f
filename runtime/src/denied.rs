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
mod tests {
    use super::*;
    use crate::{Rule, Subject};

    const SECOND: Duration = Duration::from_secs(1);
    const START_US: u64 = 1_800_000_000_000_000;

    fn policy(count: u64) -> Policy {
        Policy::builder("p").rule(Rule::sliding_window(count, 60 * SECOND)).build().unwrap()
    }

    fn key(subject: impl std::fmt::Display) -> Key {
        Key::new("app", "p", &Subject::of(subject))
    }

    fn request<'a>(policy: &'a Policy, keys: &'a [Key], cost: u64) -> Request<'a> {
        Request { policy, keys, cost, report: false, peek: false }
    }

    fn denied(retry_after_us: u64) -> Verdict {
        Verdict::Denied { rule: 0, retry_after: Some(Duration::from_micros(retry_after_us)) }
    }

    #[test]
    fn a_denial_is_recalled_for_its_time_and_counted_down() {
        let (denials, policy, keys) = (Denials::new(SECOND).unwrap(), policy(1), [key("s")]);
        let request = request(&policy, &keys, 1);
        assert_eq!(denials.recall(&request, START_US), None);
        denials.learn(&request, denied(3_000_000), START_US, START_US + 200);
        assert_eq!(denials.recall(&request, START_US + 200), Some(denied(3_000_000)));
        assert_eq!(denials.recall(&request, START_US + 999_999), Some(denied(2_000_201)));
        assert_eq!(denials.recall(&request, START_US + 1_000_000), None, "a second after it was asked");
    }

    #[test]
    fn no_denial_is_recalled_once_the_call_would_be_admitted() {
        let (denials, policy, keys) = (Denials::new(SECOND).unwrap(), policy(1), [key("s")]);
        let request = request(&policy, &keys, 1);
        denials.learn(&request, denied(5_000), START_US, START_US + 200);
        assert_eq!(denials.recall(&request, START_US + 4_999), Some(denied(201)));
        for later_us in [5_000, 5_001, 900_000] {
            assert_eq!(denials.recall(&request, START_US + later_us), None);
        }
        denials.learn(&request, denied(100), START_US, START_US + 200);
        assert_eq!(denials.recall(&request, START_US + 200), None, "the answer took longer than the denial");
    }

    #[test]
    fn one_caller_asks_again_while_the_others_go_by_what_is_known() {
        let (denials, policy, keys) = (Denials::new(SECOND).unwrap(), policy(1), [key("s")]);
        let request = request(&policy, &keys, 1);
        denials.learn(&request, denied(3_000_000), START_US, START_US);
        assert_eq!(denials.recall(&request, START_US + 1_000_000), None);
        assert_eq!(denials.recall(&request, START_US + 1_000_000), Some(denied(2_000_000)));
        // It has not come back.
        assert_eq!(denials.recall(&request, START_US + 1_000_000 + RENEWAL_US), None);
    }

    #[test]
    fn a_denial_is_recalled_for_the_same_rules_the_same_subjects_and_no_lower_cost() {
        let denials = Denials::new(SECOND).unwrap();
        let (five, six, keys, others) = (policy(5), policy(6), [key("s"), key("a")], [key("s"), key("b")]);
        denials.learn(&request(&five, &keys, 2), denied(3_000_000), START_US, START_US);
        let recall = |request: &Request<'_>| denials.recall(request, START_US).is_some();
        assert!(recall(&request(&five, &keys, 2)) && recall(&request(&five, &keys, 3)));
        assert!(recall(&request(&policy(5), &keys, 2)), "rules that are equal are the same");
        assert!(!recall(&request(&five, &keys, 1)));
        assert!(!recall(&request(&six, &keys, 2)));
        assert!(!recall(&request(&five, &others, 2)) && !recall(&request(&five, &keys[..1], 2)));
        assert!(!recall(&Request { report: true, ..request(&five, &keys, 2) }));
        assert!(!recall(&Request { peek: true, ..request(&five, &keys, 2) }));
    }

    #[test]
    fn what_can_never_be_admitted_is_recalled_too() {
        let (denials, policy, keys) = (Denials::new(SECOND).unwrap(), policy(1), [key("s")]);
        let request = request(&policy, &keys, 2);
        let never = Verdict::Denied { rule: 0, retry_after: None };
        denials.learn(&request, never, START_US, START_US);
        assert_eq!(denials.recall(&request, START_US + 999_999), Some(never));
        assert_eq!(denials.recall(&request, START_US + 1_000_000), None);
    }

    #[test]
    fn an_admission_and_a_clock_set_back_let_a_denial_be_forgotten() {
        let (denials, policy, keys) = (Denials::new(SECOND).unwrap(), policy(1), [key("s")]);
        let request = request(&policy, &keys, 1);
        denials.learn(&request, denied(3_000_000), START_US, START_US);
        denials.learn(&request, Verdict::Admitted, START_US, START_US);
        assert_eq!(denials.recall(&request, START_US), None);
        denials.learn(&request, denied(3_000_000), START_US, START_US);
        assert_eq!(denials.recall(&request, START_US - 1), None);
        assert_eq!(denials.recall(&request, START_US), None, "it was forgotten for good");
    }

    #[test]
    fn a_policy_with_a_ban_remembers_no_denial() {
        let ban = tallygate_rules::Ban::new(3, 60 * SECOND, 600 * SECOND);
        let banning = Policy::builder("p").rule(Rule::sliding_window(1, 60 * SECOND)).ban(ban).build().unwrap();
        let (denials, keys) = (Denials::new(SECOND).unwrap(), [key("s")]);
        let request = request(&banning, &keys, 1);
        for verdict in [denied(3_000_000), Verdict::Banned { retry_after: 600 * SECOND }] {
            denials.learn(&request, verdict, START_US, START_US);
            assert_eq!(denials.recall(&request, START_US), None);
        }
    }

    #[test]
    fn a_flood_of_subjects_takes_no_more_memory_than_there_is_room_for() {
        let (denials, policy) = (Denials::new(SECOND).unwrap(), policy(1));
        for subject in 0..50_000 {
            let keys = [key(subject)];
            denials.learn(&request(&policy, &keys, 1), denied(3_000_000), START_US, START_US);
        }
        let held = || denials.shards.iter().map(|shard| shard.lock().unwrap().denials.len()).sum::<usize>();
        assert!(held() > 15_000 && held() <= SHARDS * MOST_PER_SHARD, "{}", held());
        for subject in 50_000..100_000 {
            let keys = [key(subject)];
            let request = request(&policy, &keys, 1);
            denials.learn(&request, denied(3_000_000), START_US + 2_000_000, START_US + 2_000_000);
            assert!(denials.recall(&request, START_US + 2_000_000).is_some());
        }
        assert!(held() <= SHARDS * MOST_PER_SHARD, "{}", held());
    }
}
