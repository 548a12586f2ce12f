//! The tallies under one lock.

mod subject;

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashTable;

use self::subject::StoredSubject;
use super::counters::{BanState, places_of_cell};
use super::tally::Tally;
use super::trace::{Left, RemnantTable, TraceKey};
use crate::call::{StoredLease, TallyId};
use crate::error::BackendError;
use crate::observe::{GaugeChange, TallyGauge};
#[cfg(feature = "admin")]
use crate::policy;
use crate::policy::RuleGroup;
use crate::population::{Inhabitant, Population};

/// How many buckets a new tally sweeps for expired tallies: more than it adds, so that expired ones never pile up.
const SWEPT: usize = 4;

/// How many tallies of a policy are visited to find one that a new tally may replace.
const CANDIDATES: usize = 128;

/// How many tallies are compared to replace the least used of them: each is read from memory that no cache may have.
const RANKED: usize = 8;

pub(super) struct Shard {
    tallies: HashTable<StoredTally>,
    capacity: Capacity,
    /// Upper bounds of what replaced subjects have counted.
    trace: RefCell<RemnantTable>,
}

/// Keeps the number of tallies within its limit.
pub(super) struct Capacity {
    population: Population,
    max_subjects: usize,
    gauge: TallyGauge,
}

/// The place of a tally in the shard, taken or free.
pub(super) enum TallyPlace<'a> {
    Known(&'a mut Tally),
    New {
        hash: u64,
        id: TallyId<'a>,
        tallies: &'a mut HashTable<StoredTally>,
        capacity: &'a mut Capacity,
        trace: &'a RefCell<RemnantTable>,
    },
}

/// A tally of a subject, with those of units beside it, and its identity. It fills two cache lines and is aligned to
/// them, so that a decision misses the cache only once, except for units.
#[repr(align(128))]
pub(super) struct StoredTally {
    hash: u64,
    /// The segment of the rule group that the [entry](crate::policy::GroupEntry) is named after.
    segment: Arc<str>,
    subject: StoredSubject,
    tally: Tally,
}

/// What a tally counts of which a lease was given back.
pub(crate) struct FreedTally {
    pub(crate) segment: Arc<str>,
    pub(crate) subject: String,
}

impl Shard {
    pub(super) fn new(max_subjects: usize) -> Self {
        let capacity = Capacity { population: Population::default(), max_subjects, gauge: TallyGauge::default() };
        Self { tallies: HashTable::new(), capacity, trace: RefCell::new(RemnantTable::new(max_subjects)) }
    }

    /// How the number of tallies has changed since the last such question.
    #[inline]
    pub(super) fn change(&mut self) -> GaugeChange {
        self.capacity.gauge.change()
    }

    pub(super) fn len(&self) -> usize {
        self.tallies.len()
    }

    /// Returns the place of a tally, and what is left of subjects that were replaced.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "it has some callers, so that the compiler would not do it for plain calls"
    )]
    pub(super) fn place_and_trace<'a>(
        &'a mut self,
        hash: u64,
        id: TallyId<'a>,
    ) -> (TallyPlace<'a>, &'a RefCell<RemnantTable>) {
        let Self { tallies, capacity, trace } = self;
        let trace = &*trace;
        // Only the hash is compared in the search, which keeps it short. Two tallies hardly ever have the same.
        let place = match tallies.find_entry(hash, |entry| entry.hash == hash) {
            Ok(found) if found.get().is_of(id) => TallyPlace::Known(&mut found.into_mut().tally),
            Ok(other) => Self::place_among(other.into_table(), capacity, trace, hash, id),
            Err(absent) => TallyPlace::New { hash, id, tallies: absent.into_table(), capacity, trace },
        };
        (place, trace)
    }

    /// Finds the place if another tally has the same hash.
    #[cold]
    fn place_among<'a>(
        tallies: &'a mut HashTable<StoredTally>,
        capacity: &'a mut Capacity,
        trace: &'a RefCell<RemnantTable>,
        hash: u64,
        id: TallyId<'a>,
    ) -> TallyPlace<'a> {
        match tallies.find_entry(hash, |entry| entry.matches(hash, id)) {
            Ok(found) => TallyPlace::Known(&mut found.into_mut().tally),
            Err(absent) => TallyPlace::New { hash, id, tallies: absent.into_table(), capacity, trace },
        }
    }

    #[inline]
    pub(super) fn find(&mut self, hash: u64, id: TallyId<'_>) -> Option<&mut Tally> {
        self.tallies.find_mut(hash, |entry| entry.matches(hash, id))?.tally.find(id.group)
    }

    /// Returns the bucket of the entry that has the tally of this id, until another tally is added.
    #[inline]
    pub(super) fn bucket(&self, hash: u64, id: TallyId<'_>) -> Option<usize> {
        self.tallies.find_bucket_index(hash, |entry| entry.matches(hash, id))
    }

    /// Returns the tally of this group in a [bucket](Self::bucket).
    #[inline]
    pub(super) fn tally_in(&mut self, bucket: usize, group: &RuleGroup) -> Option<&mut Tally> {
        self.tallies.get_bucket_mut(bucket)?.tally.find(group)
    }

    /// Returns the tally of this id, a new one if there is none.
    ///
    /// # Errors
    ///
    /// Fails as [`TallyPlace::tally`] does.
    #[inline(never)]
    pub(super) fn tally<'a>(
        &'a mut self,
        hash: u64,
        id: TallyId<'a>,
        now_us: u64,
    ) -> Result<&'a mut Tally, BackendError> {
        let (place, trace) = self.place_and_trace(hash, id);
        Ok(place.tally(now_us)?.of(id.group, Left { trace, hash, now_us }))
    }

    /// Finds a tally, or makes one of what the subject has left, which is not stored.
    pub(super) fn look<'t>(
        &'t mut self,
        hash: u64,
        id: TallyId<'_>,
        now_us: u64,
        unstored: &'t mut Option<Tally>,
    ) -> &'t mut Tally {
        let Self { tallies, trace, .. } = self;
        let found = tallies.find_mut(hash, |entry| entry.matches(hash, id));
        if let Some(tally) = found.and_then(|entry| entry.tally.find(id.group)) {
            return tally;
        }
        unstored.insert(Tally::of_left(id.group, Left { trace, hash, now_us }))
    }

    /// Gives a lease back; returns what the tally counts, if anybody waits for a lease.
    #[inline]
    pub(super) fn give_back(&mut self, lease: StoredLease, is_awaited: impl FnOnce() -> bool) -> Option<FreedTally> {
        let StoredLease { hash, name } = lease;
        // Two tallies hardly ever have the same hash.
        let found = self.tallies.find_mut(hash, |entry| entry.hash == hash)?;
        let entry = if found.tally.give_back(name) { found } else { self.give_back_among(lease)? };
        is_awaited().then(|| FreedTally { segment: Arc::clone(&entry.segment), subject: entry.subject.text() })
    }

    /// Gives a lease back if another tally has the same hash, or if its own was reset.
    #[cold]
    fn give_back_among(&mut self, lease: StoredLease) -> Option<&mut StoredTally> {
        let StoredLease { hash, name } = lease;
        let entry = self.tallies.find_mut(hash, |entry| entry.hash == hash && entry.tally.has_lease(name))?;
        entry.tally.give_back(name);
        Some(entry)
    }

    /// Changes what is left of a subject without a tally, and leaves that.
    pub(super) fn change_left(
        &mut self,
        hash: u64,
        id: TallyId<'_>,
        now_us: u64,
        change: impl FnOnce(&mut Tally) -> bool,
    ) -> bool {
        let mut unstored = Tally::of_left(id.group, Left { trace: &self.trace, hash, now_us });
        let has_changed = change(&mut unstored);
        unstored.leave_counts(&id.group.segment, hash, self.trace.get_mut(), now_us);
        has_changed
    }

    /// Whether anything is left of subjects that were replaced.
    pub(super) fn has_trace(&self, now_us: u64) -> bool {
        !self.trace.borrow().is_over(now_us)
    }

    /// How long what is left in the trace may deny a subject by its rules; `None` if nothing is left.
    pub(super) fn traced_for(&mut self, hash: u64, id: TallyId<'_>, now_us: u64) -> Option<Duration> {
        let trace = self.trace.get_mut();
        let key = |place| TraceKey::new(hash, &id.group.segment, place);
        let cells =
            id.group.traced.celled.iter().enumerate().flat_map(|(index, rule)| {
                places_of_cell(index).map(|place| key(place).named(rule.remnants_are_named()))
            });
        let found = cells.chain([key(0)]).flat_map(|key| trace.find(key, now_us));
        let ends_us = found.map(|remnant| remnant.ends_us).max()?;
        Some(Duration::from_micros(ends_us.saturating_sub(now_us)))
    }

    /// Removes what is left of a subject's ban.
    pub(super) fn unban(&mut self, hash: u64, id: TallyId<'_>, now_us: u64) {
        BanState::forget(&id.group.segment, hash, self.trace.get_mut(), now_us);
    }

    /// Returns the subjects of tallies in which something counts, for the rule groups whose segments begin with one of
    /// these names, before the layout. Each subject comes after the index of its name.
    #[cfg(feature = "admin")]
    pub(super) fn subjects(&self, names: &[String], now_us: u64) -> impl Iterator<Item = (usize, String)> {
        let place = |segment| names.iter().position(|names| names == policy::names(segment));
        self.tallies.iter().flat_map(move |entry| {
            let places = entry.tally.counting(&entry.segment, now_us).filter_map(place);
            places.map(|place| (place, entry.subject.text()))
        })
    }

    /// Removes a tally, and what is left of it from before.
    pub(super) fn remove(&mut self, hash: u64, id: TallyId<'_>, now_us: u64) {
        let trace = self.trace.get_mut();
        // The places of the log and of each cell.
        for place in 0..places_of_cell(id.group.celled.len())[0] {
            trace.remove(TraceKey::new(hash, &id.group.segment, place), now_us);
        }
        self.unban(hash, id, now_us);
        if let Ok(mut found) = self.tallies.find_entry(hash, |entry| entry.matches(hash, id))
            && !found.get_mut().tally.forget(id.group)
        {
            let (removed, _) = found.remove();
            self.capacity.population.remove(removed.policy());
        }
        self.capacity.gauge.set(self.tallies.len());
    }
}

impl<'a> TallyPlace<'a> {
    /// Returns the tally that the entry is named after, a new one for a new subject.
    ///
    /// # Errors
    ///
    /// The memory is full, and none of the tallies that are looked at may go: the subjects are banned, have running calls, or
    /// have denials for which the trace has no place.
    #[inline]
    pub(super) fn tally(self, now_us: u64) -> Result<&'a mut Tally, BackendError> {
        self.tally_beside(&[], now_us)
    }

    /// Returns the tally, as [`tally`](Self::tally) does. A new one replaces none of the `spared` tallies, each of which has its
    /// hash behind it.
    ///
    /// # Errors
    ///
    /// Fails as [`tally`](Self::tally) does, and if all tallies are spared.
    #[inline]
    pub(super) fn tally_beside(
        self,
        spared: &[(TallyId<'_>, u64)],
        now_us: u64,
    ) -> Result<&'a mut Tally, BackendError> {
        match self {
            Self::Known(tally) => Ok(tally),
            Self::New { hash, id, tallies, capacity, trace } => {
                capacity.insert(tallies, id, Left { trace, hash, now_us }, spared)
            }
        }
    }
}

impl Capacity {
    #[cold]
    fn insert<'t>(
        &mut self,
        tallies: &'t mut HashTable<StoredTally>,
        id: TallyId<'_>,
        left: Left<'_>,
        spared: &[(TallyId<'_>, u64)],
    ) -> Result<&'t mut Tally, BackendError> {
        let Left { hash, now_us, .. } = left;
        let is_full = tallies.len() >= self.max_subjects;
        let expired = |entry: &StoredTally| {
            let goes = entry.tally.is_expired(now_us) || is_full && entry.tally.is_idle();
            (goes && !entry.is_one_of(spared)).then(|| entry.policy())
        };
        self.population.sweep(tallies, SWEPT, usize::MAX, expired);
        let policy = Inhabitant::of(&id.group.segment);
        if tallies.len() >= self.max_subjects && !self.make_room(tallies, policy, left, spared) {
            if entries_of(tallies, spared) == tallies.len() {
                let why = "memory: a call has more subjects than there is room for; raise `max_subjects`";
                return Err(BackendError::new(why));
            }
            return Err(BackendError::away(
                "memory: too many subjects are banned, were denied, or have concurrent calls, at once; raise `max_subjects`",
            ));
        }
        self.population.add(policy);
        self.gauge.set(tallies.len() + 1);
        let entry = tallies.insert_unique(hash, StoredTally::new(id, left), |entry| entry.hash);
        Ok(&mut entry.into_mut().tally)
    }

    /// Removes a tally of the policy with the most tallies, so that many subjects of one policy do not push out those
    /// of others. The least used of some that are not denied goes first, so that a flood replaces its own subjects; then one that
    /// is not banned. For a policy with fewer tallies, any without running calls may go. What was counted of it leaves a trace.
    fn make_room(
        &mut self,
        tallies: &mut HashTable<StoredTally>,
        policy: Inhabitant,
        left: Left<'_>,
        spared: &[(TallyId<'_>, u64)],
    ) -> bool {
        let Left { trace, now_us, .. } = left;
        let most = self.population.most_without(policy, entries_of(tallies, spared));
        let is_candidate = |entry: &StoredTally| entry.policy() == most && !entry.is_one_of(spared);
        let leaves = |entry: &StoredTally| {
            entry.tally.leave_trace(&entry.segment, entry.hash, &mut trace.borrow_mut(), now_us).then_some(most)
        };
        let rank =
            |entry: &StoredTally| (is_candidate(entry) && !entry.tally.is_denied(now_us)).then(|| entry.tally.rank());
        if self.population.remove_least(tallies, CANDIDATES, RANKED, rank, leaves) {
            self.gauge.count_replaced();
            return true;
        }
        let mut removes_one = |may_go: &dyn Fn(&Tally) -> bool, most_visited: usize| {
            let mut visited = 0;
            for _ in 0..tallies.num_buckets().div_ceil(CANDIDATES) {
                let removed = self.population.sweep(tallies, CANDIDATES, 1, |entry| {
                    let is_candidate = is_candidate(entry);
                    visited += usize::from(is_candidate);
                    if is_candidate && may_go(&entry.tally) { leaves(entry) } else { None }
                });
                if removed > 0 || visited >= most_visited {
                    return removed > 0;
                }
            }
            false
        };
        let may_be_banned = most != policy;
        // Where bans stay, a search of the whole table would let each call of a banned crowd hold the lock for long.
        let most_visited = if may_be_banned { usize::MAX } else { CANDIDATES };
        let may_go = |tally: &Tally| !tally.is_running() && (may_be_banned || !tally.is_banned(now_us));
        let has_removed =
            removes_one(&|tally: &Tally| !tally.is_denied(now_us), CANDIDATES) || removes_one(&may_go, most_visited);
        if has_removed {
            self.gauge.count_replaced();
        }
        has_removed
    }
}

/// How many entries of the table have these tallies, of which several may be in one.
fn entries_of(tallies: &HashTable<StoredTally>, ids: &[(TallyId<'_>, u64)]) -> usize {
    let bucket = |&(id, hash): &(TallyId<'_>, u64)| tallies.find_bucket_index(hash, |entry| entry.matches(hash, id));
    ids.iter().filter_map(bucket).collect::<HashSet<_>>().len()
}

impl StoredTally {
    fn new(id: TallyId<'_>, left: Left<'_>) -> Self {
        let TallyId { group, subject } = id;
        let segment = Arc::clone(&group.entry.segment);
        let tally = if group.has_own_entry() {
            Tally::of_left(group, left)
        } else {
            let mut tally = Tally::new(group.entry.cells);
            tally.restore(&segment, &group.entry.traced, left);
            tally
        };
        Self { hash: left.hash, segment, subject: StoredSubject::new(subject), tally }
    }

    fn policy(&self) -> Inhabitant {
        Inhabitant::of(&self.segment)
    }

    fn is_one_of(&self, ids: &[(TallyId<'_>, u64)]) -> bool {
        ids.iter().any(|&(id, hash)| self.matches(hash, id))
    }

    #[inline]
    fn matches(&self, hash: u64, id: TallyId<'_>) -> bool {
        self.hash == hash && self.is_of(id)
    }

    #[inline]
    fn is_of(&self, id: TallyId<'_>) -> bool {
        id.group.has_entry_segment(&self.segment) && self.subject.matches(id.subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_two_cache_lines() {
        assert_eq!(size_of::<StoredTally>(), 128);
    }
}
