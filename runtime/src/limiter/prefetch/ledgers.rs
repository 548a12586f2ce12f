//! The ledgers of all subjects that this process may be busy with.

use std::sync::Arc;

use hashbrown::HashTable;

use super::ledger::{Ledger, Refill};
use super::part::{Part, PutBack, Taken};
use crate::call::{Call, TallyId};
use crate::clock::Clock;
use crate::observe::opaque_debug;
use crate::policy::Ahead;
use crate::population::{Inhabitant, Population};
use crate::store::Outcome;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{RwLock, read, write};
use crate::system::RandomState;

/// Subjects are spread over this many locks; a power of two.
const SHARDS: usize = 16;

/// The most subjects under one lock, some 500 bytes each.
const MOST_PER_SHARD: usize = 256;

/// How many places of the table a new subject searches for one that is no longer busy.
const SWEPT: usize = 8;

/// The longest time after a denial without a refill.
const LONGEST_PAUSE_US: u64 = 1_000_000;

pub(super) struct Ledgers {
    clock: Clock,
    seed: RandomState,
    shards: [RwLock<LedgerShard>; SHARDS],
    refills: AtomicUsize,
}

#[derive(Default)]
struct LedgerShard {
    ledgers: HashTable<Ledger>,
    population: Population,
    /// The number of the ledger that was added last. No two ledgers have the same number.
    latest: u64,
}

/// A running refill.
pub(super) struct RefillUnderWay<'a>(&'a AtomicUsize);

impl Ledgers {
    pub(super) fn new(clock: Clock) -> Self {
        let (seed, shards) = (RandomState::default(), Default::default());
        Self { clock, seed, shards, refills: AtomicUsize::new(0) }
    }

    /// Takes a call of one subject from its parts, if enough is left. Returns the refill to start in the background.
    pub(super) fn take(&self, call: Call<'_>, ahead: Ahead) -> (Option<Taken>, Option<Refill>) {
        let Some(id) = call.tally_ids().next() else { return (None, None) };
        let hash = id.hash(&self.seed);
        let shard = read(self.shard(hash));
        if let Some(ledger) = shard.find(hash, id).filter(|ledger| ledger.decides(call)) {
            return ledger.take(call, &self.clock);
        }
        drop(shard);
        let now_us = self.clock.now_us();
        write(self.shard(hash)).insert(hash, id, call, Ledger::new(hash, id, call, ahead, now_us), now_us);
        (None, None)
    }

    /// Calls `look` on the ledger of the call, if there is one, beside other callers.
    fn look<T>(&self, call: Call<'_>, look: impl FnOnce(&Ledger) -> T) -> Option<T> {
        let id = call.tally_ids().next()?;
        let hash = id.hash(&self.seed);
        read(self.shard(hash)).find(hash, id).map(look)
    }

    /// Calls `with` on the ledger of the call, if there is one.
    pub(super) fn with<T>(&self, call: Call<'_>, with: impl FnOnce(&mut Ledger) -> T) -> Option<T> {
        let id = call.tally_ids().next()?;
        let hash = id.hash(&self.seed);
        let mut shard = write(self.shard(hash));
        shard.ledgers.find_mut(hash, |ledger| ledger.matches(id)).map(with)
    }

    /// Puts back the units of a call of one subject that is not made.
    pub(super) fn put_back(&self, call: Call<'_>, taken: &Taken) -> PutBack {
        self.look(call, |ledger| ledger.put_back(taken, call.options.cost)).unwrap_or(PutBack::TooLate)
    }

    /// Returns the parts for a call of one subject that have not ended.
    pub(super) fn parts(&self, call: Call<'_>) -> Vec<Arc<Part>> {
        self.look(call, |ledger| ledger.parts().to_vec()).unwrap_or_default()
    }

    /// Records the outcome of a call that was sent at `asked_us`: after a denial, nothing is taken ahead for a while.
    pub(super) fn record(&self, call: Call<'_>, outcome: Outcome, asked_us: u64) {
        match outcome {
            Outcome::Denied { rule, retry_after } if call.policy.prefetch().is_some() && !call.options.peek => {
                if let Some(group) = call.policy.group_of(rule as usize) {
                    let until_us = retry_after.ends_us(asked_us).min(asked_us.saturating_add(LONGEST_PAUSE_US));
                    self.look(call.part(group), |ledger| ledger.pause(until_us));
                }
            }
            // A ban is on the main subject.
            Outcome::Banned { .. } => self.end(call.part(0)),
            _ => {}
        }
    }

    /// Ends the ledgers of the call's subjects, so that the store decides the next calls. Tasks give the parts back
    /// when these would have ended.
    pub(super) fn end(&self, call: Call<'_>) {
        self.end_each(call).for_each(drop);
    }

    /// Ends the ledgers of the call's subjects while their tallies are reset: nothing of their parts is given back, because
    /// a tally without times would give back later calls for them. Returns the marks to clear if the reset fails.
    pub(super) fn end_with_tallies(&self, call: Call<'_>) -> Vec<Arc<AtomicBool>> {
        let marks = self.end_each(call).map(|ended| ended.is_reset);
        marks.inspect(|is_reset| is_reset.store(true, Ordering::Release)).collect()
    }

    fn end_each(&self, call: Call<'_>) -> impl Iterator<Item = Ledger> {
        let now_us = self.clock.now_us();
        let ended = call.tally_ids().filter_map(|id| self.remove(id));
        ended.inspect(move |ended| {
            if ended.left(now_us) > 0 {
                call.policy.observed().ended_early();
            }
        })
    }

    fn remove(&self, id: TallyId<'_>) -> Option<Ledger> {
        let hash = id.hash(&self.seed);
        let mut shard = write(self.shard(hash));
        let (ended, _) = shard.ledgers.find_entry(hash, |ledger| ledger.matches(id)).ok()?.remove();
        shard.population.remove(ended.inhabitant());
        Some(ended)
    }

    /// Calls `with` on the ledger that has asked for a part, if it still exists.
    pub(super) fn with_numbered<T>(&self, refill: &Refill, with: impl FnOnce(&mut Ledger) -> T) -> Option<T> {
        self.with(refill.call.as_call(), |ledger| (ledger.number == refill.number).then(|| with(ledger)))?
    }

    /// Records that a refill runs, until the result is dropped.
    pub(super) fn begin_refill(&self) -> RefillUnderWay<'_> {
        self.refills.fetch_add(1, Ordering::Relaxed);
        RefillUnderWay(&self.refills)
    }

    /// Whether any refill runs.
    #[inline]
    pub(super) fn has_running_refills(&self) -> bool {
        self.refills.load(Ordering::Relaxed) > 0
    }

    #[allow(clippy::cast_possible_truncation, reason = "only some bits of the hash are wanted")]
    fn shard(&self, hash: u64) -> &RwLock<LedgerShard> {
        &self.shards[(hash >> 40) as usize & (SHARDS - 1)]
    }
}

impl LedgerShard {
    fn find(&self, hash: u64, id: TallyId<'_>) -> Option<&Ledger> {
        self.ledgers.find(hash, |ledger| ledger.matches(id))
    }

    /// Adds the ledger of a subject, in place of one with other rules. Without room, the subject gets none.
    fn insert(&mut self, hash: u64, id: TallyId<'_>, call: Call<'_>, mut ledger: Ledger, now_us: u64) {
        self.latest += 1;
        ledger.number = self.latest;
        if let Some(known) = self.ledgers.find_mut(hash, |known| known.matches(id)) {
            if !known.decides(call) {
                *known = ledger;
            }
            return;
        }
        let policy = ledger.inhabitant();
        if self.make_room(policy, now_us) {
            self.population.add(policy);
            self.ledgers.insert_unique(hash, ledger, |ledger| ledger.hash);
        }
    }

    /// Removes an idle ledger. If the shard is full, it removes one of the policy with the most ledgers, so that one
    /// policy cannot keep out the subjects of another. Tasks give back the parts of a removed ledger when these would
    /// have ended.
    fn make_room(&mut self, policy: Inhabitant, now_us: u64) -> bool {
        let Self { ledgers, population, .. } = self;
        let is_full = ledgers.len() >= MOST_PER_SHARD;
        let idle = |ledger: &Ledger| ledger.is_idle(now_us).then(|| ledger.inhabitant());
        if population.sweep(ledgers, if is_full { usize::MAX } else { SWEPT }, 1, idle) > 0 || !is_full {
            return true;
        }
        let most = population.most(policy);
        if most == policy {
            return false;
        }
        let of_most = |ledger: &Ledger| (ledger.inhabitant() == most).then_some(most);
        let unused = |ledger: &Ledger| of_most(ledger).filter(|_| ledger.parts().is_empty());
        population.sweep(ledgers, usize::MAX, 1, unused) > 0 || population.sweep(ledgers, usize::MAX, 1, of_most) > 0
    }
}

impl Drop for RefillUnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

opaque_debug!(Ledgers);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::*;
    use crate::call::CallOptions;
    use crate::decision::{AdmittedAt, Report};
    use crate::policy::Policy;
    use crate::subject::{Subject, SubjectKey};

    const FLOOD: usize = 2 * SHARDS * MOST_PER_SHARD;

    fn policy(name: &'static str) -> Policy {
        Policy::builder(name).rule(Rule::sliding_window(1_000, Duration::from_secs(60))).build().unwrap()
    }

    fn subject(number: usize) -> [SubjectKey; 1] {
        [Subject::of(number).key()]
    }

    fn call<'a>(policy: &'a Policy, subject: &'a [SubjectKey]) -> Call<'a> {
        Call::new(policy, subject, CallOptions::PLAIN)
    }

    fn take(ledgers: &Ledgers, policy: &Policy, number: usize) {
        ledgers.take(call(policy, &subject(number)), Ahead::new(Duration::from_secs(10)));
    }

    fn has(ledgers: &Ledgers, policy: &Policy, number: usize) -> bool {
        ledgers.with(call(policy, &subject(number)), |_| ()).is_some()
    }

    fn number_of(ledgers: &Ledgers) -> usize {
        ledgers.shards.iter().map(|shard| read(shard).ledgers.len()).sum()
    }

    #[test]
    fn a_flood_of_one_policy_takes_the_place_of_no_other() {
        let (ledgers, flooding, calm) = (Ledgers::new(Clock::tokio()), policy("p"), policy("calm"));
        (0..200).for_each(|number| take(&ledgers, &calm, number));
        (0..FLOOD).for_each(|number| take(&ledgers, &flooding, number));
        assert_eq!(number_of(&ledgers), SHARDS * MOST_PER_SHARD);
        (200..400).for_each(|number| take(&ledgers, &calm, number));
        (0..FLOOD).for_each(|number| take(&ledgers, &flooding, number));
        assert!((0..400).all(|number| has(&ledgers, &calm, number)));
        assert_eq!(number_of(&ledgers), SHARDS * MOST_PER_SHARD);
        let subject = subject(0);
        ledgers.end(call(&calm, &subject));
        for shard in &ledgers.shards {
            let shard = read(shard);
            let counted =
                [&flooding, &calm].map(|policy| shard.population.count(Inhabitant::of(&policy.groups()[0].segment)));
            assert_eq!(counted.iter().sum::<usize>(), shard.ledgers.len());
        }
    }

    #[test]
    fn a_subject_from_which_much_was_taken_ahead_keeps_its_place_before_one_that_only_called() {
        let (ledgers, flooding, calm) = (Ledgers::new(Clock::tokio()), policy("p"), policy("calm"));
        take(&ledgers, &flooding, 0);
        let part = Arc::new(Part::new(100, u64::MAX, AdmittedAt::Once(0), Report::default()));
        ledgers.with(call(&flooding, &subject(0)), |ledger| ledger.add(part, 0, 0)).unwrap();
        (0..FLOOD).for_each(|number| take(&ledgers, &flooding, number));
        (0..500).for_each(|number| take(&ledgers, &calm, number));
        assert!((0..500).all(|number| has(&ledgers, &calm, number)));
        assert!(has(&ledgers, &flooding, 0));
    }
}
