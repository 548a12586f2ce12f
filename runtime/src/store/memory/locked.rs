//! Shards that a call has locked.

use std::ops::{Deref, DerefMut};

use super::shard::Shard;
use super::tally::Tally;
use super::trace::Left;
use crate::call::{Call, TallyId};
use crate::error::BackendError;
use crate::observe::GaugeChange;
use crate::policy::RuleGroup;
use crate::store::Outcome;
use crate::store::outcome_builder::OutcomeBuilder;
use crate::sync::MutexGuard;

/// A locked shard. The metrics are updated when it is unlocked.
pub(super) struct LockedShard<'a> {
    shard: MutexGuard<'a, Shard>,
    /// Dropped after the guard, so that the metrics are updated without the lock.
    change: GaugeChange,
}

impl<'a> LockedShard<'a> {
    #[inline]
    pub(super) fn new(shard: MutexGuard<'a, Shard>) -> Self {
        Self { shard, change: GaugeChange::default() }
    }
}

impl Deref for LockedShard<'_> {
    type Target = Shard;

    #[inline]
    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl DerefMut for LockedShard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}

impl Drop for LockedShard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.change = self.shard.change();
    }
}

/// The place of a tally's shard in a call.
pub(super) struct ShardPlace<'a> {
    shard: usize,
    guard: Option<MutexGuard<'a, Shard>>,
    /// The first place of this shard, which has its lock.
    locked: usize,
    /// The bucket of the tally, once that was found.
    bucket: usize,
}

impl ShardPlace<'_> {
    #[inline]
    pub(super) fn new(shard: usize) -> Self {
        Self { shard, guard: None, locked: 0, bucket: 0 }
    }
}

/// The tallies of a call, in locked shards. The metrics are updated when all are unlocked.
pub(super) struct LockedShards<'p, 'a> {
    /// Each tally with its hash.
    ids: &'p [(TallyId<'p>, u64)],
    /// The place of each tally.
    places: &'p mut [ShardPlace<'a>],
}

impl Drop for LockedShards<'_, '_> {
    fn drop(&mut self) {
        let changes = self.places.iter_mut().filter_map(|place| Some(place.guard.as_mut()?.change()));
        let change = changes.fold(GaugeChange::default(), GaugeChange::and);
        self.places.iter_mut().for_each(|place| place.guard = None);
        drop(change);
    }
}

impl<'p, 'a> LockedShards<'p, 'a> {
    /// Locks the shards of these tallies in ascending order, so that two calls never wait for each other.
    #[inline]
    pub(super) fn new(
        ids: &'p [(TallyId<'p>, u64)],
        places: &'p mut [ShardPlace<'a>],
        lock: impl Fn(usize) -> MutexGuard<'a, Shard>,
    ) -> Self {
        let mut locked = None;
        // Calls have few places, so that this takes less time than a sorted list.
        while let Some(next) = places
            .iter_mut()
            .filter(|place| locked.is_none_or(|locked| place.shard > locked))
            .min_by_key(|place| place.shard)
        {
            locked = Some(next.shard);
            next.guard = Some(lock(next.shard));
        }
        for index in 1..places.len() {
            let shard = places[index].shard;
            places[index].locked = places.iter().position(|place| place.shard == shard).unwrap_or(index);
        }
        Self { ids, places }
    }

    /// The shard of the tally with this index.
    #[inline]
    fn shard(&mut self, index: usize) -> Option<&mut Shard> {
        let locked = self.places.get(index)?.locked;
        self.places.get_mut(locked)?.guard.as_deref_mut()
    }

    /// See [`Shard::look`].
    pub(super) fn look<'t>(&'t mut self, index: usize, now_us: u64, unstored: &'t mut Option<Tally>) -> &'t mut Tally {
        let (id, hash) = self.ids[index];
        match self.shard(index) {
            Some(shard) => shard.look(hash, id, now_us, unstored),
            None => unstored.insert(Tally::new(id.group.cells())),
        }
    }

    /// Adds the tallies that are missing. None takes the place of another.
    ///
    /// # Errors
    ///
    /// Fails as [`TallyPlace::tally`](super::shard::TallyPlace::tally) does, and if the call has more subjects than there is
    /// room for.
    pub(super) fn insert_missing(&mut self, now_us: u64) -> Result<(), BackendError> {
        let ids = self.ids;
        for (index, &(id, hash)) in ids.iter().enumerate() {
            if let Some(shard) = self.shard(index) {
                let (place, trace) = shard.place_and_trace(hash, id);
                place.tally_beside(ids, now_us)?.of(id.group, Left { trace, hash, now_us });
            }
        }
        Ok(())
    }

    /// Counts a call if sliding windows alone decide it and all of them admit it at this time; returns whether they do.
    #[inline]
    pub(super) fn count_in_windows(&mut self, call: Call<'_>, now_us: u64) -> bool {
        let ids = self.ids;
        for (index, &(id, hash)) in ids.iter().enumerate() {
            let needed = call.needs_at(index);
            let found = self.shard(index).and_then(|shard| {
                let bucket = shard.bucket(hash, id)?;
                shard.tally_in(bucket, id.group)?.has_room(id.group, needed, now_us).then_some(bucket)
            });
            let Some(bucket) = found else { return false };
            self.places[index].bucket = bucket;
        }
        for (index, (id, _)) in ids.iter().enumerate() {
            let bucket = self.places[index].bucket;
            if let Some(tally) = self.shard(index).and_then(|shard| shard.tally_in(bucket, id.group)) {
                tally.count(id.group, call.cost_at(index), now_us);
            }
        }
        true
    }

    /// Asks all rules of all subjects. A tally may move the time forward.
    pub(super) fn ask(&mut self, call: Call<'_>, now_us: &mut u64) -> Outcome {
        let mut builder = OutcomeBuilder::new();
        let mut first = 0;
        for (index, (id, _)) in self.ids.iter().enumerate() {
            // Only a peek meets a subject without a tally, and does not insert one.
            let mut unstored = None;
            let tally = self.look(index, *now_us, &mut unstored);
            *now_us = tally.settle_time(id.group, *now_us);
            tally.ask(id.group, first, call.needs_at(index), *now_us, &mut builder);
            first += id.group.rules.len();
        }
        builder.build()
    }

    /// Whether a denial is early: all rules of all subjects would admit the call without what others have left.
    pub(super) fn is_early(&mut self, call: Call<'_>, now_us: u64) -> bool {
        let ids = self.ids;
        let mut all = |tells: &dyn Fn(usize, &RuleGroup, &Tally) -> bool| {
            ids.iter().enumerate().all(|(index, &(id, hash))| {
                let tally = self.shard(index).and_then(|shard| shard.find(hash, id));
                tally.is_some_and(|tally| tells(index, id.group, tally))
            })
        };
        !all(&|_, _, tally| !tally.counts_others())
            && all(&|index, group, tally| tally.admits_without_others(group, call.needs_at(index), now_us))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tallygate_rules::{Ban, Rule};

    use crate::call::{Call, CallOptions};
    use crate::clock::Clock;
    use crate::decision::{Recount, RuleStatus};
    use crate::policy::Policy;
    use crate::store::{Memory, Outcome};
    use crate::subject::{Subject, SubjectKey};

    const HOUR: Duration = Duration::from_secs(3_600);

    /// Returns a policy that counts so many subjects beside the main one. The last of them has fewer calls than the others.
    fn policy_of(others: usize) -> Policy {
        let rule = |label: usize| Rule::sliding_window(if label == others { 2 } else { 9 }, HOUR);
        let builder = Policy::builder("p").rule(Rule::sliding_window(9, HOUR));
        (1..=others).fold(builder, |builder, label| builder.rule_on(label.to_string(), rule(label))).build().unwrap()
    }

    fn remaining(memory: &Memory, policy: &Policy, subjects: &[SubjectKey]) -> Vec<u64> {
        let options = CallOptions { peek: true, report: true, ..CallOptions::PLAIN };
        let report = memory.decide(Call::new(policy, subjects, options)).unwrap().report;
        report.rules().iter().map(RuleStatus::remaining).collect()
    }

    #[test]
    fn few_subjects_and_many_count_a_call_all_or_none_in_one_shard_and_in_several() {
        for (others, max_subjects) in [(1, 99), (1, 99_999), (7, 99), (7, 99_999)] {
            let (policy, memory) = (policy_of(others), Memory::new(Clock::tokio(), max_subjects));
            let subjects: Vec<_> = (0..=others).map(|number| Subject::of(number).key()).collect();
            let call = Call::new(&policy, &subjects, CallOptions::PLAIN);
            let decide = || memory.decide(call).unwrap().outcome;
            assert_eq!([decide(), decide()], [Outcome::Admitted; 2]);
            assert!(matches!(decide(), Outcome::Denied { .. }));
            let mut expected = vec![7; others];
            expected.push(0);
            assert_eq!(remaining(&memory, &policy, &subjects), expected);
        }
    }

    #[test]
    fn new_subjects_of_one_call_do_not_take_the_places_of_each_other() {
        for others in 1..4 {
            let (policy, memory) = (policy_of(others), Memory::new(Clock::tokio(), 4));
            for round in 0..200 {
                let subjects: Vec<_> = (0..=others).map(|label| Subject::of(round).and(label).key()).collect();
                let call = Call::new(&policy, &subjects, CallOptions::PLAIN);
                // Subjects that share a trace may be denied early.
                let answer = memory.decide(call).unwrap_or_else(|error| panic!("{others}, {round}: {error}"));
                assert!(round > 0 || answer.outcome == Outcome::Admitted);
            }
        }
        let (policy, memory) = (policy_of(4), Memory::new(Clock::tokio(), 4));
        let subjects: Vec<_> = (0..=4).map(|label| Subject::of(label).key()).collect();
        let error = memory.decide(Call::new(&policy, &subjects, CallOptions::PLAIN)).unwrap_err();
        assert!(error.to_string().contains("more subjects than there is room for"), "{error}");
    }

    #[test]
    fn a_subject_whose_calls_were_refunded_gives_its_place_to_another_and_leaves_nothing() {
        let (policy, memory) = (policy_of(0), Memory::new(Clock::tokio(), 1));
        let [alice, bob] = ["alice", "bob"].map(|name| Subject::of(name).key());
        let alices = Call::new(&policy, std::slice::from_ref(&alice), CallOptions::PLAIN);
        let answer = memory.decide(alices).unwrap();
        assert!(memory.recount(alices, &Recount::REFUND, &answer.at));
        assert_eq!(remaining(&memory, &policy, &[alice]), [9]);
        assert_eq!(memory.outcome(&policy, &bob, 1), Some(Outcome::Admitted));
        assert_eq!(remaining(&memory, &policy, &[alice]), [9]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refund_of_all_calls_ends_no_ban_when_other_subjects_come() {
        let ban = Ban::new(1, HOUR, 9 * HOUR);
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, HOUR)).ban(ban).build().unwrap();
        let memory = Memory::new(Clock::tokio(), 1);
        let [alice, bob] = ["alice", "bob"].map(|name| Subject::of(name).key());
        let alices = Call::new(&policy, std::slice::from_ref(&alice), CallOptions::PLAIN);
        let answer = memory.decide(alices).unwrap();
        assert!(matches!(memory.decide(alices).unwrap().outcome, Outcome::Denied { .. }));
        assert!(memory.recount(alices, &Recount::REFUND, &answer.at));
        tokio::time::advance(HOUR).await;
        // There is no room for another subject while one is banned.
        assert_eq!(memory.outcome(&policy, &bob, 1), None);
        assert!(matches!(memory.decide(alices).unwrap().outcome, Outcome::Banned { .. }));
    }
}
