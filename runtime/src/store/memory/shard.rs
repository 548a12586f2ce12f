//! The tallies under one lock.

use std::sync::Arc;

use hashbrown::HashTable;

use super::tally::Tally;
use crate::call::TallyId;
use crate::error::BackendError;
use crate::observe::{GaugeChange, TallyGauge};
#[cfg(feature = "admin")]
use crate::policy;
use crate::population::{Inhabitant, Population};

/// How many buckets a new tally sweeps for expired tallies: more than it adds, so that expired ones never pile up.
const SWEPT: usize = 4;

/// How many tallies of a policy are visited to find one that a new tally may replace.
const CANDIDATES: usize = 128;

pub(super) struct Shard {
    tallies: HashTable<StoredTally>,
    capacity: Capacity,
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
    New { hash: u64, id: TallyId<'a>, tallies: &'a mut HashTable<StoredTally>, capacity: &'a mut Capacity },
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

impl Shard {
    pub(super) fn new(max_subjects: usize) -> Self {
        let capacity = Capacity { population: Population::default(), max_subjects, gauge: TallyGauge::default() };
        Self { tallies: HashTable::new(), capacity }
    }

    /// How the number of tallies has changed since the last such question.
    #[inline]
    pub(super) fn change(&mut self) -> GaugeChange {
        self.capacity.gauge.change()
    }

    pub(super) fn len(&self) -> usize {
        self.tallies.len()
    }

    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "it has some callers, so that the compiler would not do it for plain calls"
    )]
    pub(super) fn place<'a>(&'a mut self, hash: u64, id: TallyId<'a>) -> TallyPlace<'a> {
        // Only the hash is compared in the search, which keeps it short. Two tallies hardly ever have the same.
        match self.tallies.find_entry(hash, |entry| entry.hash == hash) {
            Ok(found) if found.get().is_of(id) => TallyPlace::Known(&mut found.into_mut().tally),
            Ok(other) => Self::place_among(other.into_table(), &mut self.capacity, hash, id),
            Err(absent) => TallyPlace::New { hash, id, tallies: absent.into_table(), capacity: &mut self.capacity },
        }
    }

    /// Finds the place if another tally has the same hash.
    #[cold]
    fn place_among<'a>(
        tallies: &'a mut HashTable<StoredTally>,
        capacity: &'a mut Capacity,
        hash: u64,
        id: TallyId<'a>,
    ) -> TallyPlace<'a> {
        match tallies.find_entry(hash, |entry| entry.matches(hash, id)) {
            Ok(found) => TallyPlace::Known(&mut found.into_mut().tally),
            Err(absent) => TallyPlace::New { hash, id, tallies: absent.into_table(), capacity },
        }
    }

    #[inline]
    pub(super) fn find(&mut self, hash: u64, id: TallyId<'_>) -> Option<&mut Tally> {
        self.tallies.find_mut(hash, |entry| entry.matches(hash, id))?.tally.find(id.group)
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
        Ok(self.place(hash, id).tally(now_us)?.of(id.group))
    }

    /// Returns the subjects of tallies in which something counts, for the rule groups whose segments begin with one of
    /// these names, before the layout. Each subject comes after the index of its name.
    #[cfg(feature = "admin")]
    pub(super) fn subjects(&self, names: &[String], now_us: u64) -> impl Iterator<Item = (usize, String)> {
        let place = |segment| names.iter().position(|names| names == policy::names(segment));
        self.tallies.iter().flat_map(move |entry| {
            let places = entry.tally.counting(&entry.segment, now_us).filter_map(place);
            places.filter_map(|place| Some((place, entry.subject.text()?.to_owned())))
        })
    }

    pub(super) fn remove(&mut self, hash: u64, id: TallyId<'_>) {
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
    /// The memory is full, and no tally can be removed: those that were visited are denied, which would end with them, or
    /// have running calls.
    #[inline]
    pub(super) fn tally(self, now_us: u64) -> Result<&'a mut Tally, BackendError> {
        match self {
            Self::Known(tally) => Ok(tally),
            Self::New { hash, id, tallies, capacity } => capacity.insert(tallies, hash, id, now_us),
        }
    }
}

impl Capacity {
    #[cold]
    fn insert<'t>(
        &mut self,
        tallies: &'t mut HashTable<StoredTally>,
        hash: u64,
        id: TallyId<'_>,
        now_us: u64,
    ) -> Result<&'t mut Tally, BackendError> {
        let expired = |entry: &StoredTally| entry.tally.is_expired(now_us).then(|| entry.policy());
        self.population.sweep(tallies, SWEPT, usize::MAX, expired);
        let policy = Inhabitant::of(&id.group.segment);
        if tallies.len() >= self.max_subjects && !self.make_room(tallies, policy, now_us) {
            return Err(BackendError::away(
                "memory: too many subjects are denied, or have concurrent calls, at once; raise `max_subjects`",
            ));
        }
        self.population.add(policy);
        self.gauge.set(tallies.len() + 1);
        let entry = tallies.insert_unique(hash, StoredTally::new(hash, id), |entry| entry.hash);
        Ok(&mut entry.into_mut().tally)
    }

    /// Removes a tally of the policy with the most tallies, so that many subjects of one policy do not push out those
    /// of others. A tally that is not denied goes first. For a policy with fewer tallies, any without running calls may
    /// go.
    fn make_room(&mut self, tallies: &mut HashTable<StoredTally>, policy: Inhabitant, now_us: u64) -> bool {
        let most = self.population.most(policy);
        let mut visited = 0;
        let mut removed = 0;
        for _ in 0..tallies.num_buckets().div_ceil(CANDIDATES) {
            removed += self.population.sweep(tallies, CANDIDATES, 1, |entry| {
                let is_candidate = entry.policy() == most;
                visited += usize::from(is_candidate);
                (is_candidate && !entry.tally.is_denied(now_us)).then_some(most)
            });
            if removed > 0 || visited >= CANDIDATES {
                break;
            }
        }
        if removed == 0 && most != policy {
            let idle = |entry: &StoredTally| (entry.policy() == most && !entry.tally.is_running()).then_some(most);
            removed = self.population.sweep(tallies, usize::MAX, 1, idle);
        }
        removed > 0
    }
}

impl StoredTally {
    fn new(hash: u64, id: TallyId<'_>) -> Self {
        let TallyId { group, subject } = id;
        let segment = Arc::clone(&group.entry.segment);
        Self { hash, segment, subject: StoredSubject::new(subject), tally: Tally::new(group.entry.cells) }
    }

    fn policy(&self) -> Inhabitant {
        Inhabitant::of(&self.segment)
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

/// How many bytes are stored in the table itself. A subject then takes three words.
const SHORT: usize = 22;

/// The escaped text of a subject, in as little room as possible.
pub(super) enum StoredSubject {
    Short { length: u8, bytes: [u8; SHORT] },
    Long(Box<[u8]>),
}

impl StoredSubject {
    pub(super) fn new(text: &str) -> Self {
        let text = text.as_bytes();
        let mut bytes = [0; SHORT];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(start), Ok(length)) => {
                start.copy_from_slice(text);
                Self::Short { length, bytes }
            }
            _ => Self::Long(text.into()),
        }
    }

    #[inline]
    pub(super) fn matches(&self, text: &str) -> bool {
        are_equal(self.bytes(), text.as_bytes())
    }

    #[cfg(feature = "admin")]
    fn text(&self) -> Option<&str> {
        str::from_utf8(self.bytes()).ok()
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }
}

/// Whether both are equal. The usual lengths are compared as two numbers each, without calling a function.
#[inline]
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match (one.len(), ends(one), ends(other)) {
        (8..=16, Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// The first and the last eight bytes.
#[inline]
fn ends(bytes: &[u8]) -> Option<[u64; 2]> {
    Some([*bytes.first_chunk()?, *bytes.last_chunk()?].map(u64::from_ne_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_two_cache_lines() {
        assert_eq!(size_of::<StoredTally>(), 128);
    }

    #[test]
    fn a_subject_of_any_length_is_itself_and_no_other() {
        for length in 0..101 {
            let text = "x".repeat(length);
            let stored = StoredSubject::new(&text);
            assert!(stored.matches(&text) && !stored.matches(&format!("{text}x")));
            assert!(length == 0 || !stored.matches(&text[1..]) && !stored.matches(&format!("y{}", &text[1..])));
            assert_eq!(matches!(stored, StoredSubject::Short { .. }), length <= SHORT);
        }
    }

    #[test]
    fn a_short_subject_takes_three_words() {
        assert_eq!(size_of::<StoredSubject>(), 24);
    }
}
