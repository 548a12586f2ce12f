//! The most frequent of many subjects, in bounded memory.
//!
//! Misra and Gries, "Finding repeated elements" (1982), with room made at once for half of the subjects, as by Anderson et
//! al., "A high-performance algorithm for identifying frequent items in data streams" (2017): counting takes constant time on
//! average.

use std::hash::BuildHasher;
use std::num::NonZeroUsize;

use hashbrown::HashTable;

use crate::system::RandomState;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SubjectId<'a> {
    /// The label of the subject; `None` is the main one.
    pub(super) label: Option<&'a str>,
    /// The subject as it stands in keys.
    pub(super) subject: &'a str,
}

/// Counts denials, and keeps the most frequent subjects: after n denials, every
/// subject with more than 2n ∕ `max_subjects` of them.
pub(super) struct Sketch {
    max_subjects: NonZeroUsize,
    /// No other subject has been denied more often than this.
    floor: u64,
    kept: HashTable<SketchedSubject>,
}

pub(super) struct SketchedSubject {
    hash: u64,
    label: Option<Box<str>>,
    subject: Box<str>,
    /// The denials since the subject is kept.
    pub(super) denials: u64,
    /// The most denials that it may have had before.
    pub(super) missed: u64,
    /// The part of `denials` that is not published yet.
    pub(super) unpublished: u64,
}

impl Sketch {
    pub(super) fn new(max_subjects: NonZeroUsize) -> Self {
        Self { max_subjects, floor: 0, kept: HashTable::new() }
    }

    pub(super) fn count(&mut self, id: SubjectId<'_>, seed: &RandomState) {
        let hash = seed.hash_one(id);
        if let Some(kept) = self.kept.find_mut(hash, |kept| kept.id() == id) {
            return kept.count();
        }
        if self.kept.len() >= self.max_subjects.get() {
            self.make_room();
        }
        let mut kept = SketchedSubject {
            hash,
            label: id.label.map(Into::into),
            subject: id.subject.into(),
            denials: 0,
            missed: self.floor,
            unpublished: 0,
        };
        kept.count();
        self.kept.insert_unique(hash, kept, |kept| kept.hash);
    }

    /// Removes the less frequent half of the subjects.
    fn make_room(&mut self) {
        let mut counts: Vec<_> = self.kept.iter().map(SketchedSubject::at_most).collect();
        let middle = counts.len() / 2;
        if middle < counts.len() {
            let (_, median, _) = counts.select_nth_unstable(middle);
            self.floor = *median;
        }
        self.kept.retain(|kept| kept.at_most() > self.floor);
    }

    /// Returns the kept subjects, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &SketchedSubject> {
        self.kept.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut SketchedSubject> {
        self.kept.iter_mut()
    }
}

impl SketchedSubject {
    pub(super) fn id(&self) -> SubjectId<'_> {
        SubjectId { label: self.label.as_deref(), subject: &self.subject }
    }

    pub(super) fn at_most(&self) -> u64 {
        self.denials.saturating_add(self.missed)
    }

    fn count(&mut self) {
        self.denials = self.denials.saturating_add(1);
        self.unpublished = self.unpublished.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn sketch_of(subjects: &[u16], max_subjects: usize) -> Sketch {
        let seed = RandomState::default();
        let mut sketch = Sketch::new(NonZeroUsize::new(max_subjects).unwrap());
        for subject in subjects {
            sketch.count(SubjectId { label: None, subject: &subject.to_string() }, &seed);
        }
        sketch
    }

    fn exact(subjects: &[u16]) -> HashMap<String, u64> {
        let mut counts = HashMap::new();
        for subject in subjects {
            *counts.entry(subject.to_string()).or_default() += 1;
        }
        counts
    }

    /// Some subjects come often, and most of them once or twice.
    fn subjects() -> impl Strategy<Value = Vec<u16>> {
        prop::collection::vec(prop_oneof![0_u16..8, 0_u16..60, 0_u16..5_000], 0..800)
    }

    proptest! {
        #[test]
        fn each_count_lies_within_its_bounds_and_no_frequent_subject_is_missing(subjects in subjects(), most in 1_usize..64) {
            let (sketch, exact) = (sketch_of(&subjects, most), exact(&subjects));
            prop_assert!(sketch.kept.len() <= most);
            let bound = 2 * subjects.len() as u64 / most as u64;
            prop_assert!(sketch.floor <= bound);
            for kept in sketch.iter() {
                let count = exact[&*kept.subject];
                prop_assert!(kept.denials <= count && count <= kept.at_most() && kept.missed <= bound);
            }
            for (subject, count) in exact {
                let is_kept = sketch.iter().any(|kept| *kept.subject == subject);
                prop_assert!(is_kept || count <= sketch.floor, "{} came {} times", subject, count);
            }
        }

        #[test]
        fn counts_are_exact_where_there_is_room_for_all(subjects in prop::collection::vec(0_u16..50, 0..500)) {
            let sketch = sketch_of(&subjects, 50);
            let counts: HashMap<_, _> = sketch.iter().map(|kept| (kept.subject.to_string(), kept.denials)).collect();
            prop_assert_eq!(counts, exact(&subjects));
            prop_assert!(sketch.iter().all(|kept| kept.missed == 0));
        }
    }

    #[test]
    fn a_flood_of_single_subjects_takes_no_more_room_and_hides_nobody() {
        let flood: Vec<_> = (0..60_000).flat_map(|number| [number, 7]).collect();
        let sketch = sketch_of(&flood, 100);
        assert!(sketch.kept.len() <= 100 && sketch.kept.capacity() < 300);
        let most = sketch.iter().max_by_key(|kept| kept.denials).unwrap();
        assert_eq!((&*most.subject, most.denials), ("7", 60_001));
    }
}
