//! The tallies under one lock.

use hashbrown::HashTable;

use super::ballot::Ballot;
use super::tally::Tally;
use crate::backend::{Name, Verdict};
use crate::broom::Broom;
use crate::observe::Tallies;
use crate::{Outage, Policy};

/// How many places of the table a new subject looks at for tallies that are over: in them are more than it adds, so these
/// never pile up.
const SWEPT: usize = 4;

/// How many places a new subject looks at for a tally to replace when there are as many as there may be.
const CANDIDATES: usize = 128;

/// Some of the tallies.
pub(super) struct Shard {
    tallies: HashTable<Entry>,
    room: Room,
}

/// How many tallies there may be.
struct Room {
    broom: Broom,
    max_subjects: usize,
    counted: Tallies,
}

struct Entry {
    hash: u64,
    subject: Box<str>,
    /// Of the last call: says which tally of the subject it is, and whether the subject is being denied.
    policy: Policy,
    index: usize,
    tally: Tally,
}

impl Shard {
    pub(super) fn new(max_subjects: usize) -> Self {
        let room = Room { broom: Broom::default(), max_subjects, counted: Tallies::default() };
        Self { tallies: HashTable::new(), room }
    }

    /// How many tallies there are.
    pub(super) fn len(&self) -> usize {
        self.tallies.len()
    }

    /// Returns the tally of that name and its hash, a new one for a new subject.
    ///
    /// # Errors
    ///
    /// There are as many subjects as there may be, and those looked at are all being denied: forgetting one would end
    /// its denial, and admitting the call uncounted would end the limit.
    #[inline]
    pub(super) fn tally(&mut self, hash: u64, name: Name<'_>, now_us: u64) -> Result<&mut Tally, Outage> {
        match self.tallies.find_entry(hash, |entry| entry.is_of(name)) {
            Ok(known) => Ok(known.into_mut().asked(name)),
            Err(unknown) => self.room.insert(unknown.into_table(), hash, name, now_us),
        }
    }

    /// Returns the tally of that name and its hash, if there is one.
    pub(super) fn known(&mut self, hash: u64, name: Name<'_>) -> Option<&mut Tally> {
        self.tallies.find_mut(hash, |entry| entry.is_of(name)).map(|entry| &mut entry.tally)
    }

    /// Forgets the tally of that name and its hash.
    pub(super) fn remove(&mut self, hash: u64, name: Name<'_>) {
        if let Ok(known) = self.tallies.find_entry(hash, |entry| entry.is_of(name)) {
            known.remove();
        }
        self.room.counted.are(self.tallies.len());
    }
}

impl Room {
    /// Adds a new tally.
    #[cold]
    fn insert<'t>(
        &mut self,
        tallies: &'t mut HashTable<Entry>,
        hash: u64,
        name: Name<'_>,
        now_us: u64,
    ) -> Result<&'t mut Tally, Outage> {
        self.broom.sweep(tallies, SWEPT, usize::MAX, |entry| entry.tally.is_over(now_us));
        if tallies.len() >= self.max_subjects
            && self.broom.sweep(tallies, CANDIDATES, 1, |entry| !entry.is_denied(now_us)) == 0
        {
            return Err(Outage::new("memory: too many subjects are being denied at once; raise `max_subjects`"));
        }
        self.counted.are(tallies.len() + 1);
        let entry = tallies.insert_unique(hash, Entry::new(hash, name), |entry| entry.hash);
        Ok(&mut entry.into_mut().tally)
    }
}

impl Entry {
    fn new(hash: u64, name: Name<'_>) -> Self {
        let Name { policy, index, group, subject } = name;
        Self { hash, subject: (**subject).into(), policy: policy.clone(), index, tally: Tally::new(group) }
    }

    #[inline]
    fn is_of(&self, name: Name<'_>) -> bool {
        name.is(&self.policy, self.index, &self.subject)
    }

    /// Returns the tally, which is asked by the policy of that name.
    #[inline]
    fn asked(&mut self, name: Name<'_>) -> &mut Tally {
        if !name.is_of(&self.policy, self.index) {
            (self.policy, self.index) = (name.policy.clone(), name.index);
        }
        &mut self.tally
    }

    fn is_denied(&self, now_us: u64) -> bool {
        let mut ballot = Ballot::default();
        if let Some(group) = self.policy.groups().get(self.index) {
            self.tally.ask(group, 0, 1, now_us, &mut ballot);
        }
        ballot.verdict() != Verdict::Admitted
    }
}
