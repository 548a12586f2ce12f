//! The tallies under one lock.

use hashbrown::HashTable;

use super::outcome_builder::OutcomeBuilder;
use super::tally::Tally;
use crate::error::BackendError;
use crate::observe::TallyGauge;
use crate::policy::Policy;
use crate::store::answer::Outcome;
use crate::store::tally_id::TallyId;
use crate::sweeper::Sweeper;

/// How many buckets of the table a new tally sweeps for expired ones: more than it adds, so that these never pile up.
const SWEPT: usize = 4;

/// How many buckets a new tally visits for one to replace, when there are as many as there may be.
const CANDIDATES: usize = 128;

/// Some of the tallies.
pub(super) struct Shard {
    tallies: HashTable<Entry>,
    capacity: Capacity,
}

/// Keeps the number of tallies within its bound.
struct Capacity {
    sweeper: Sweeper,
    max_subjects: usize,
    gauge: TallyGauge,
}

struct Entry {
    hash: u64,
    subject: Box<str>,
    /// The policy of the last call, which tells the layout of the tally and whether the subject is denied.
    policy: Policy,
    index: usize,
    tally: Tally,
}

impl Shard {
    pub(super) fn new(max_subjects: usize) -> Self {
        let capacity = Capacity { sweeper: Sweeper::default(), max_subjects, gauge: TallyGauge::default() };
        Self { tallies: HashTable::new(), capacity }
    }

    /// How many tallies there are.
    pub(super) fn len(&self) -> usize {
        self.tallies.len()
    }

    /// Returns the tally of that identity and hash, a new one for a new subject.
    ///
    /// # Errors
    ///
    /// There are as many subjects as there may be, and those visited are all denied: removing one would end its denial,
    /// and admitting the call uncounted would break the limit.
    #[inline]
    pub(super) fn tally(&mut self, hash: u64, id: TallyId<'_>, now_us: u64) -> Result<&mut Tally, BackendError> {
        match self.tallies.find_entry(hash, |entry| entry.matches(id)) {
            Ok(found) => Ok(found.into_mut().tally_of(id)),
            Err(absent) => self.capacity.insert(absent.into_table(), hash, id, now_us),
        }
    }

    /// Returns the tally of that identity and hash, if there is one.
    pub(super) fn find(&mut self, hash: u64, id: TallyId<'_>) -> Option<&mut Tally> {
        self.tallies.find_mut(hash, |entry| entry.matches(id)).map(|entry| &mut entry.tally)
    }

    /// Removes the tally of that identity and hash.
    pub(super) fn remove(&mut self, hash: u64, id: TallyId<'_>) {
        if let Ok(found) = self.tallies.find_entry(hash, |entry| entry.matches(id)) {
            found.remove();
        }
        self.capacity.gauge.set(self.tallies.len());
    }
}

impl Capacity {
    /// Inserts a new tally.
    #[cold]
    fn insert<'t>(
        &mut self,
        tallies: &'t mut HashTable<Entry>,
        hash: u64,
        id: TallyId<'_>,
        now_us: u64,
    ) -> Result<&'t mut Tally, BackendError> {
        self.sweeper.sweep(tallies, SWEPT, usize::MAX, |entry| entry.tally.is_expired(now_us));
        if tallies.len() >= self.max_subjects
            && self.sweeper.sweep(tallies, CANDIDATES, 1, |entry| !entry.is_denied(now_us)) == 0
        {
            return Err(BackendError::new("memory: too many subjects are being denied at once; raise `max_subjects`"));
        }
        self.gauge.set(tallies.len() + 1);
        let entry = tallies.insert_unique(hash, Entry::new(hash, id), |entry| entry.hash);
        Ok(&mut entry.into_mut().tally)
    }
}

impl Entry {
    fn new(hash: u64, id: TallyId<'_>) -> Self {
        let TallyId { policy, index, group, subject } = id;
        Self { hash, subject: (**subject).into(), policy: policy.clone(), index, tally: Tally::new(group) }
    }

    #[inline]
    fn matches(&self, id: TallyId<'_>) -> bool {
        id.matches(&self.policy, self.index, &self.subject)
    }

    /// Returns the tally, and remembers the policy of this call.
    #[inline]
    fn tally_of(&mut self, id: TallyId<'_>) -> &mut Tally {
        if !id.is_of(&self.policy, self.index) {
            self.policy = id.policy.clone();
            self.index = id.index;
        }
        &mut self.tally
    }

    fn is_denied(&self, now_us: u64) -> bool {
        let mut builder = OutcomeBuilder::default();
        if let Some(group) = self.policy.groups().get(self.index) {
            self.tally.ask(group, 0, 1, now_us, &mut builder);
        }
        builder.build() != Outcome::Admitted
    }
}
