//! The tallies under one lock.

use foldhash::quality::RandomState;
use indexmap::IndexMap;

use super::ballot::Ballot;
use super::tally::Tally;
use crate::backend::Verdict;
use crate::key::Key;
use crate::observe::Tallies;
use crate::{Outage, Policy};

/// How many tallies a new subject looks at for one that is over: more than it adds, so these never pile up.
const SWEPT: usize = 2;

/// How many tallies a new subject looks at for one to replace when there are as many as there may be.
const CANDIDATES: usize = 64;

/// Some of the tallies.
pub(super) struct Shard {
    tallies: IndexMap<Box<str>, Entry, RandomState>,
    /// Where to go on looking for tallies that are over.
    swept: usize,
    max_subjects: usize,
    counted: Tallies,
}

struct Entry {
    tally: Tally,
    /// Of the last call: says whether the subject is being denied.
    policy: Policy,
    group: usize,
}

impl Shard {
    pub(super) fn new(hasher: RandomState, max_subjects: usize) -> Self {
        Self { tallies: IndexMap::with_hasher(hasher), swept: 0, max_subjects, counted: Tallies::default() }
    }

    /// Returns the tally of a subject, a new one for a new subject.
    ///
    /// # Errors
    ///
    /// There are as many subjects as there may be, and those looked at are all being denied: forgetting one would end
    /// its denial, and admitting the call uncounted would end the limit.
    pub(super) fn tally(
        &mut self,
        key: &Key,
        policy: &Policy,
        group: usize,
        now_us: u64,
    ) -> Result<&mut Tally, Outage> {
        let index = match self.tallies.get_index_of(key.as_str()) {
            Some(index) => index,
            None => self.insert(key, policy, group, now_us)?,
        };
        let entry = &mut self.tallies[index];
        if !entry.policy.is(policy) {
            (entry.policy, entry.group) = (policy.clone(), group);
        }
        Ok(&mut entry.tally)
    }

    /// Returns the tally of a subject, if there is one.
    pub(super) fn known(&mut self, key: &Key) -> Option<&mut Tally> {
        self.tallies.get_mut(key.as_str()).map(|entry| &mut entry.tally)
    }

    /// Forgets the tally of a subject.
    pub(super) fn remove(&mut self, key: &Key) {
        self.tallies.swap_remove(key.as_str());
        self.counted.are(self.tallies.len());
    }

    fn insert(&mut self, key: &Key, policy: &Policy, group: usize, now_us: u64) -> Result<usize, Outage> {
        self.sweep(SWEPT, usize::MAX, |entry| entry.tally.is_over(now_us));
        if self.tallies.len() >= self.max_subjects && self.sweep(CANDIDATES, 1, |entry| !entry.is_denied(now_us)) == 0 {
            return Err(Outage::new("memory: too many subjects are being denied at once; raise `max_subjects`"));
        }
        let tally = Tally::new(policy.groups().get(group));
        let index = self.tallies.insert_full(key.as_str().into(), Entry { tally, policy: policy.clone(), group }).0;
        self.counted.are(self.tallies.len());
        Ok(index)
    }

    /// Looks at the next few tallies in turn and removes up to `most` of those that are `removable`.
    fn sweep(&mut self, looked_at: usize, most: usize, removable: impl Fn(&Entry) -> bool) -> usize {
        let mut removed = 0;
        for _ in 0..looked_at {
            let at = if self.swept < self.tallies.len() { self.swept } else { 0 };
            if self.tallies.get_index(at).is_some_and(|(_, entry)| removable(entry)) {
                self.tallies.swap_remove_index(at);
                removed += 1;
            }
            if removed == most {
                break;
            }
            self.swept = at + 1;
        }
        removed
    }
}

impl Entry {
    fn is_denied(&self, now_us: u64) -> bool {
        let mut ballot = Ballot::default();
        if let Some(group) = self.policy.groups().get(self.group) {
            self.tally.ask(group, 0, 1, now_us, &mut ballot);
        }
        ballot.verdict() != Verdict::Admitted
    }
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard").field("tallies", &self.tallies.len()).finish_non_exhaustive()
    }
}
