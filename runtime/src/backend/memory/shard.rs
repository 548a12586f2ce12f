//! The tallies under one lock.

use foldhash::quality::RandomState;
use indexmap::IndexMap;

use super::ballot::Ballot;
use super::tally::Tally;
use crate::backend::Verdict;
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
    /// Says whether the subject is being denied.
    policy: Policy,
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
    pub(super) fn tally(&mut self, key: &str, policy: &Policy, now_us: u64) -> Result<&mut Tally, Outage> {
        let index = match self.tallies.get_index_of(key) {
            Some(index) => index,
            None => self.insert(key, policy, now_us)?,
        };
        Ok(&mut self.tallies[index].tally)
    }

    fn insert(&mut self, key: &str, policy: &Policy, now_us: u64) -> Result<usize, Outage> {
        self.remove_first(SWEPT, |entry| entry.tally.is_over(now_us));
        if self.tallies.len() >= self.max_subjects && !self.remove_first(CANDIDATES, |entry| !entry.is_denied(now_us)) {
            return Err(Outage::new("memory: too many subjects are being denied at once; raise `max_subjects`"));
        }
        let entry = Entry { tally: Tally::new(policy.group()), policy: policy.clone() };
        let index = self.tallies.insert_full(key.into(), entry).0;
        self.counted.are(self.tallies.len());
        Ok(index)
    }

    /// Looks at the next few tallies in turn and removes each that is `over`; tells whether there was one.
    fn remove_first(&mut self, most: usize, removable: impl Fn(&Entry) -> bool) -> bool {
        for _ in 0..most {
            let at = if self.swept < self.tallies.len() { self.swept } else { 0 };
            if self.tallies.get_index(at).is_some_and(|(_, entry)| removable(entry)) {
                self.tallies.swap_remove_index(at);
                return true;
            }
            self.swept = at + 1;
        }
        false
    }
}

impl Entry {
    fn is_denied(&self, now_us: u64) -> bool {
        let mut ballot = Ballot::default();
        self.tally.ask(self.policy.rules(), 0, 1, now_us, &mut ballot);
        ballot.verdict() != Verdict::Admitted
    }
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard").field("tallies", &self.tallies.len()).finish_non_exhaustive()
    }
}
