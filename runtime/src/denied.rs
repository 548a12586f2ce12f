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

/// The most denials remembered under one lock, some 200 bytes each.
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
        // A clock that was set back knows nothing of when a denial ends.
        if now_us >= known.over_us || now_us < known.answered_us {
            found.remove();
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
    pub(crate) fn learn(&self, request: Request<'_>, verdict: Verdict, asked_us: u64, now_us: u64) {
        let Some(name) = first_name(request) else { return };
        match verdict {
            // A policy whose denials are remembered bans nobody.
            Verdict::Admitted | Verdict::Banned { .. } => self.forget(name),
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
                self.lock(known.hash).remember(name, known, now_us);
            }
        }
    }

    /// Forgets what is known of the subjects of such a call.
    pub(crate) fn forget_all(&self, request: Request<'_>) {
        request.names().for_each(|name| self.forget(name));
    }

    fn forget(&self, name: Name<'_>) {
        let hash = name.hash(&self.seed);
        if let Ok(known) = self.lock(hash).denials.find_entry(hash, |known| known.is_of(name)) {
            known.remove();
        }
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
        let Self { denials, broom } = self;
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
mod tests {
    use super::*;
    use crate::key::Short;
    use crate::{Rule, Subject};

    const SECOND: Duration = Duration::from_secs(1);
    const START_US: u64 = 1_800_000_000_000_000;

    fn policy(count: u64) -> Policy {
        Policy::builder("p").rule(Rule::sliding_window(count, 60 * SECOND)).build().unwrap()
    }

    fn subject(value: impl std::fmt::Display) -> Short {
        Subject::of(value).short()
    }

    fn request<'a>(policy: &'a Policy, subjects: &'a [Short], cost: u64) -> Request<'a> {
        Request { policy, subjects, cost, report: false, peek: false }
    }

    fn denied(retry_after_us: u64) -> Verdict {
        Verdict::Denied { rule: 0, retry_after: Some(Duration::from_micros(retry_after_us)) }
    }

    #[test]
    fn a_denial_is_recalled_for_its_time_and_counted_down() {
        let (denials, policy, subjects) = (Denials::new(SECOND).unwrap(), policy(1), [subject("s")]);
        let request = request(&policy, &subjects, 1);
        assert_eq!(denials.recall(request, START_US), None);
        denials.learn(request, denied(3_000_000), START_US, START_US + 200);
        assert_eq!(denials.recall(request, START_US + 200), Some(denied(3_000_000)));
        assert_eq!(denials.recall(request, START_US + 999_999), Some(denied(2_000_201)));
        assert_eq!(denials.recall(request, START_US + 1_000_000), None, "a second after it was asked");
    }

    #[test]
    fn no_denial_is_recalled_once_the_call_would_be_admitted() {
        let (denials, policy, subjects) = (Denials::new(SECOND).unwrap(), policy(1), [subject("s")]);
        let request = request(&policy, &subjects, 1);
        denials.learn(request, denied(5_000), START_US, START_US + 200);
        assert_eq!(denials.recall(request, START_US + 4_999), Some(denied(201)));
        for later_us in [5_000, 5_001, 900_000] {
            assert_eq!(denials.recall(request, START_US + later_us), None);
        }
        denials.learn(request, denied(100), START_US, START_US + 200);
        assert_eq!(denials.recall(request, START_US + 200), None, "the answer took longer than the denial");
    }

    #[test]
    fn one_caller_asks_again_while_the_others_go_by_what_is_known() {
        let (denials, policy, subjects) = (Denials::new(SECOND).unwrap(), policy(1), [subject("s")]);
        let request = request(&policy, &subjects, 1);
        denials.learn(request, denied(3_000_000), START_US, START_US);
        assert_eq!(denials.recall(request, START_US + 1_000_000), None);
        assert_eq!(denials.recall(request, START_US + 1_000_000), Some(denied(2_000_000)));
        // It has not come back.
        assert_eq!(denials.recall(request, START_US + 1_000_000 + RENEWAL_US), None);
    }

    #[test]
    fn a_denial_is_recalled_for_the_same_rules_the_same_subjects_and_no_lower_cost() {
        let denials = Denials::new(SECOND).unwrap();
        let (five, six, subjects, others) =
            (policy(5), policy(6), [subject("s"), subject("a")], [subject("s"), subject("b")]);
        denials.learn(request(&five, &subjects, 2), denied(3_000_000), START_US, START_US);
        let recall = |request: Request<'_>| denials.recall(request, START_US).is_some();
        assert!(recall(request(&five, &subjects, 2)) && recall(request(&five, &subjects, 3)));
        assert!(recall(request(&policy(5), &subjects, 2)), "rules that are equal are the same");
        assert!(!recall(request(&five, &subjects, 1)));
        assert!(!recall(request(&six, &subjects, 2)));
        assert!(!recall(request(&five, &others, 2)) && !recall(request(&five, &subjects[..1], 2)));
        assert!(!recall(Request { report: true, ..request(&five, &subjects, 2) }));
        assert!(!recall(Request { peek: true, ..request(&five, &subjects, 2) }));
    }

    #[test]
    fn what_can_never_be_admitted_is_recalled_too() {
        let (denials, policy, subjects) = (Denials::new(SECOND).unwrap(), policy(1), [subject("s")]);
        let request = request(&policy, &subjects, 2);
        let never = Verdict::Denied { rule: 0, retry_after: None };
        denials.learn(request, never, START_US, START_US);
        assert_eq!(denials.recall(request, START_US + 999_999), Some(never));
        assert_eq!(denials.recall(request, START_US + 1_000_000), None);
    }

    #[test]
    fn an_admission_and_a_clock_set_back_let_a_denial_be_forgotten() {
        let (denials, policy, subjects) = (Denials::new(SECOND).unwrap(), policy(1), [subject("s")]);
        let request = request(&policy, &subjects, 1);
        denials.learn(request, denied(3_000_000), START_US, START_US);
        denials.learn(request, Verdict::Admitted, START_US, START_US);
        assert_eq!(denials.recall(request, START_US), None);
        denials.learn(request, denied(3_000_000), START_US, START_US);
        assert_eq!(denials.recall(request, START_US - 1), None);
        assert_eq!(denials.recall(request, START_US), None, "it was forgotten for good");
    }

    #[test]
    fn a_policy_with_a_ban_remembers_no_denial() {
        let ban = tallygate_rules::Ban::new(3, 60 * SECOND, 600 * SECOND);
        let banning = Policy::builder("p").rule(Rule::sliding_window(1, 60 * SECOND)).ban(ban).build().unwrap();
        let (denials, subjects) = (Denials::new(SECOND).unwrap(), [subject("s")]);
        let request = request(&banning, &subjects, 1);
        for verdict in [denied(3_000_000), Verdict::Banned { retry_after: 600 * SECOND }] {
            denials.learn(request, verdict, START_US, START_US);
            assert_eq!(denials.recall(request, START_US), None);
        }
    }

    #[test]
    fn a_flood_of_subjects_takes_no_more_memory_than_there_is_room_for() {
        let (denials, policy) = (Denials::new(SECOND).unwrap(), policy(1));
        for number in 0..50_000 {
            let subjects = [subject(number)];
            denials.learn(request(&policy, &subjects, 1), denied(3_000_000), START_US, START_US);
        }
        let held = || denials.shards.iter().map(|shard| shard.lock().unwrap().denials.len()).sum::<usize>();
        assert!(held() > 15_000 && held() <= SHARDS * MOST_PER_SHARD, "{}", held());
        for number in 50_000..100_000 {
            let subjects = [subject(number)];
            let request = request(&policy, &subjects, 1);
            denials.learn(request, denied(3_000_000), START_US + 2_000_000, START_US + 2_000_000);
            assert!(denials.recall(request, START_US + 2_000_000).is_some());
        }
        assert!(held() <= SHARDS * MOST_PER_SHARD, "{}", held());
    }
}
