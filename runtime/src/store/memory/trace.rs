//! What is left of subjects that others have replaced, so that no flood of new subjects resets a limit.
//!
//! A remnant is an upper bound: until this time, at most this much of the subject counts by this rule. Remnants may be joined
//! to a greater one, because that only makes decisions stricter. The table has sets of a fixed size, and a subject looks in two
//! of them. A remnant goes to the emptier one, so that almost all sets are full before one overflows (Azar, Broder, Karlin and
//! Upfal, "Balanced Allocations", 1994). If both are full, it is joined into a place that all subjects of a set read: that of the set
//! which shares more already.
//!
//! Denials and bans are never joined, because that would ban a subject that did nothing. They take the places of other remnants,
//! which are joined. A subject with denials or a ban for which there is no place is not replaced.

mod packed;

use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use arrayvec::ArrayVec;
use foldhash::quality::FixedState;

use self::packed::{MARK_BITS, PackedRemnant, SWEEP_US};
use crate::algorithm::Remnant;
use crate::clock::is_set_back;

/// The room for each subject that the table may have, in bytes.
const SUBJECT_BYTES: usize = 64;

/// How many places a set has: few, because all are looked at, and enough that sets fill evenly.
const SET: usize = 32;

/// How many places of a set all its subjects share.
const SHARED: usize = 2;

/// The most remnants of a rule and a subject that are found.
const FOUND: usize = 8;

/// The bit of a mark that says that the remnant is of one subject alone.
const ALONE: u16 = 1 << (MARK_BITS - 1);

/// The remnants of one rule and subject. Unless they are named, the first to end comes first, and each has a smaller amount than
/// the one before.
pub(super) type Remnants = ArrayVec<Remnant, FOUND>;

/// Identifies the remnants of a rule and a subject.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceKey {
    /// A hash of the subject, the layout and the rule.
    own: u64,
    /// Whether these remnants are never joined with those of other subjects.
    is_alone: bool,
    /// Whether their amounts are names.
    is_named: bool,
}

impl TraceKey {
    /// Returns the key of the rule at this place of a layout. `hash` is that of the subject's entry.
    pub(super) fn new(hash: u64, segment: &str, place: usize) -> Self {
        let rule = FixedState::default().hash_one((segment, place));
        let mut own = FixedState::default().build_hasher();
        own.write_u64(hash);
        own.write_u64(rule);
        Self { own: own.finish(), is_alone: false, is_named: false }
    }

    /// Returns the same key, for remnants whose amounts may be names: two of different names say nothing about each other.
    pub(super) fn named(self, is_named: bool) -> Self {
        Self { is_named, ..self }
    }

    /// Whether the first remnant says all that the second one says.
    fn covers(self, one: Remnant, other: Remnant) -> bool {
        one.covers(other) && (!self.is_named || one.amount == other.amount)
    }

    /// Returns a key whose remnants are never joined with those of other subjects.
    pub(super) fn alone(hash: u64, segment: &str, place: usize) -> Self {
        Self { is_alone: true, ..Self::new(hash, segment, place) }
    }

    /// The shared place for remnants of this kind. Names have one of their own: as great numbers, they would close other rules.
    /// `own` are the places of the set that are not shared.
    fn shared(self, own: &Range<usize>) -> usize {
        shared(own).start + usize::from(self.is_named)
    }

    #[allow(clippy::cast_possible_truncation, reason = "only some bits of the hash are wanted")]
    fn mark(self) -> u16 {
        let bits = (self.own >> 32) as u16 & (ALONE - 1);
        if self.is_alone { bits | ALONE } else { bits }
    }
}

/// The remnants of one shard, which has none before a subject is replaced.
#[derive(Debug)]
pub(super) struct RemnantTable {
    cells: Vec<PackedRemnant>,
    max_subjects: usize,
    /// When the last remnant ends.
    ends_us: u64,
    /// When it was used last, and when all of it was swept.
    used_us: u64,
    swept_us: u64,
}

/// Where to look for what is left of a subject.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    pub(super) trace: &'a RefCell<RemnantTable>,
    /// The hash of the subject's entry.
    pub(super) hash: u64,
    pub(super) now_us: u64,
}

impl RemnantTable {
    pub(super) fn new(max_subjects: usize) -> Self {
        Self { cells: Vec::new(), max_subjects, ends_us: 0, used_us: 0, swept_us: 0 }
    }

    /// Whether no remnant counts at this time.
    pub(super) fn is_over(&self, now_us: u64) -> bool {
        self.ends_us <= now_us
    }

    /// The time as of which a subject returns. If the clock has gone back by little, it stands still.
    pub(super) fn settle_time(&mut self, now_us: u64) -> u64 {
        self.sweep(now_us);
        self.used_us
    }

    /// Adds remnants of a key. Those that do not end in the future change nothing. Returns whether there was room; if not, none
    /// is added. Only remnants that are never joined with others need room.
    pub(super) fn add(&mut self, key: TraceKey, remnants: &[Remnant], now_us: u64) -> bool {
        let is_left = |remnant: &&Remnant| remnant.ends_us > now_us && remnant.amount > 0;
        let left = remnants.iter().filter(is_left).count();
        if left == 0 {
            return true;
        }
        if self.cells.is_empty() {
            let most = self.max_subjects.saturating_mul(SUBJECT_BYTES) / size_of::<PackedRemnant>();
            let whole = if most > SET { most / SET * SET } else { most.max(SHARED + 1) };
            self.cells = vec![PackedRemnant::FREE; whole];
        }
        self.sweep(now_us);
        let has_room = !key.is_alone || self.joinable(key, now_us).count() >= left;
        if has_room {
            remnants.iter().filter(is_left).for_each(|remnant| self.add_one(key, *remnant, now_us));
        }
        has_room
    }

    fn add_one(&mut self, key: TraceKey, remnant: Remnant, now_us: u64) {
        // What others share with this subject already covers this remnant: a copy would only take a place.
        if !key.is_named && self.shared_with(key, now_us).any(|known| known.covers(remnant)) {
            return;
        }
        let packed = PackedRemnant::new(key.mark(), remnant, now_us);
        self.ends_us = self.ends_us.max(packed.read(now_us).map_or(0, |(_, kept)| kept.ends_us));
        // The emptier set: how many places are free, and one of them.
        let (mut emptier, mut is_stored) = ((0, 0), false);
        for own in self.own(key) {
            let (mut free, mut is_in_set) = ((0, 0), false);
            for place in own {
                let cell = &mut self.cells[place];
                match cell.read(now_us) {
                    Some((mark, known)) if mark == key.mark() && key.covers(known, remnant) => return,
                    Some((mark, known)) if mark != key.mark() || !key.covers(remnant, known) => {}
                    // It may be that of another subject that also looks in this set, and finds the greater one.
                    Some(_) if !is_in_set => {
                        *cell = packed;
                        is_in_set = true;
                    }
                    _ => {
                        *cell = PackedRemnant::FREE;
                        free = (free.0 + 1, place);
                    }
                }
            }
            is_stored |= is_in_set;
            emptier = emptier.max(free);
        }
        if is_stored {
            return;
        }
        if let (1.., place) = emptier {
            self.cells[place] = packed;
        } else if key.is_alone {
            self.take_place(key, packed, now_us);
        } else {
            self.join(self.most_shared(key, now_us), remnant, now_us);
        }
    }

    /// Stores a remnant that must not be joined: one that may be gives its place up, and is joined with the shared ones.
    fn take_place(&mut self, key: TraceKey, packed: PackedRemnant, now_us: u64) {
        let Some(place) = self.joinable(key, now_us).next() else { return };
        let own = self.own(key).into_iter().find(|own| own.contains(&place));
        if let (Some(own), Some((_, known))) = (own, self.cells[place].read(now_us)) {
            // Its rule is not known, so those that look in either place have to find it.
            shared(&own).for_each(|place| self.join(place, known, now_us));
        }
        self.cells[place] = packed;
    }

    /// The own places of a key that a remnant of one subject alone may take.
    fn joinable(&self, key: TraceKey, now_us: u64) -> impl Iterator<Item = usize> {
        let is_alone = move |place: &usize| self.cells[*place].read(now_us).is_some_and(|(mark, _)| mark & ALONE > 0);
        self.own(key).into_iter().flatten().filter(move |place| !is_alone(place))
    }

    fn join(&mut self, shared: usize, remnant: Remnant, now_us: u64) {
        let joined = self.cells[shared].read(now_us).map_or(remnant, |(_, known)| known.joined(remnant));
        self.cells[shared] = PackedRemnant::new(0, joined, now_us);
    }

    /// The shared place with the greatest amount in the sets of a key. What is joined there says no more of the subjects that look
    /// in the other set alone.
    fn most_shared(&self, key: TraceKey, now_us: u64) -> usize {
        let [first, second] = self.own(key);
        let amount = |own: &Range<usize>| self.cells[key.shared(own)].read(now_us).map_or(0, |(_, known)| known.amount);
        key.shared(if !second.is_empty() && amount(&second) > amount(&first) { &second } else { &first })
    }

    /// What the subjects of a key's sets share by rules of its kind.
    fn shared_with(&self, key: TraceKey, now_us: u64) -> impl Iterator<Item = Remnant> {
        let sets = self.own(key).into_iter().filter(move |own| !key.is_alone && !own.is_empty());
        sets.filter_map(move |own| Some(self.cells[key.shared(&own)].read(now_us)?.1))
    }

    /// Returns what may be left of a subject by a rule.
    pub(super) fn find(&mut self, key: TraceKey, now_us: u64) -> Remnants {
        let mut found = Remnants::new();
        if self.is_over(now_us) {
            return found;
        }
        self.sweep(now_us);
        let others = self.shared_with(key, now_us).map(|remnant| Remnant { is_joined: true, ..remnant });
        for remnant in self.own_of(key, now_us).chain(others).filter(|remnant| remnant.ends_us > now_us) {
            if let Err(full) = found.try_push(remnant)
                && let Some(last) = found.last_mut()
            {
                *last = last.joined(full.element());
            }
        }
        if key.is_named {
            return found;
        }
        // What ends earlier says nothing unless it is more.
        found.sort_unstable_by_key(|remnant| (remnant.ends_us, remnant.amount));
        let mut kept = Remnants::new();
        for remnant in found.into_iter().rev() {
            if kept.last().is_none_or(|last: &Remnant| last.amount < remnant.amount) {
                kept.push(remnant);
            }
        }
        kept.reverse();
        kept
    }

    /// Returns what is left of a subject alone by a rule, of what was [found](Self::find) at this time. The rest is shared with others.
    pub(super) fn find_own(&self, key: TraceKey, now_us: u64) -> Remnants {
        self.own_of(key, now_us).filter(|remnant| remnant.ends_us > now_us).take(FOUND).collect()
    }

    fn own_of(&self, key: TraceKey, now_us: u64) -> impl Iterator<Item = Remnant> {
        let mark = key.mark();
        // Hardly any is of the key, so that the mark alone is read of most.
        let cells = self.own(key).into_iter().flat_map(|own| &self.cells[own]).filter(move |cell| cell.is_of(mark));
        cells.filter_map(move |cell| cell.read(now_us)).map(|(_, remnant)| remnant)
    }

    /// Frees the places of remnants that are over: only the last bits of a time are stored, so a later time would seem to be the
    /// same.
    fn sweep(&mut self, now_us: u64) {
        let used_us = self.used_us;
        if is_set_back(used_us, now_us) {
            // All ends are those of another time.
            self.cells.fill(PackedRemnant::FREE);
            (self.ends_us, self.used_us, self.swept_us) = (0, now_us, now_us);
            return;
        }
        self.used_us = used_us.max(now_us);
        if now_us < self.swept_us.saturating_add(SWEEP_US) {
            return;
        }
        self.swept_us = now_us;
        let unused_us = now_us.saturating_sub(used_us);
        for cell in &mut self.cells {
            if cell.is_over_after(unused_us) || cell.read(now_us).is_none() {
                *cell = PackedRemnant::FREE;
            }
        }
    }

    /// Removes what is left of a subject by a rule.
    pub(super) fn remove(&mut self, key: TraceKey, now_us: u64) {
        if self.is_over(now_us) {
            return;
        }
        for place in self.own(key).into_iter().flatten() {
            let cell = &mut self.cells[place];
            if cell.read(now_us).is_some_and(|(mark, _)| mark == key.mark()) {
                *cell = PackedRemnant::FREE;
            }
        }
    }

    /// The places for what is left of a key alone, in two sets; or in one, if both are the same.
    #[allow(clippy::cast_possible_truncation, reason = "the remainder is the index of a set")]
    fn own(&self, key: TraceKey) -> [Range<usize>; 2] {
        let size = SET.min(self.cells.len());
        let sets = self.cells.len() / size;
        // Bits that are not those of the mark.
        let [first, second] = [key.own as u32 as usize, (key.own >> (31 + MARK_BITS)) as usize].map(|bits| bits % sets);
        let places = |set: usize| set * size + SHARED..(set + 1) * size;
        [places(first), if second == first { 0..0 } else { places(second) }]
    }
}

/// The places of what the subjects of a set share. `own` are the other places of it.
fn shared(own: &Range<usize>) -> Range<usize> {
    own.start - SHARED..own.start
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_US: u64 = 1_800_000_000_000_000;
    const MINUTE_US: u64 = 60_000_000;

    fn key(subject: u64) -> TraceKey {
        TraceKey::new(fastrand::Rng::with_seed(subject).u64(..), "p/w1m", 0)
    }

    fn alone(subject: u64) -> TraceKey {
        TraceKey { is_alone: true, ..key(subject) }
    }

    /// A remnant of so many minutes from the start.
    fn remnant(minutes: u64, amount: u64) -> Remnant {
        Remnant::until(START_US + minutes * MINUTE_US, amount)
    }

    #[test]
    fn a_remnant_is_found_until_its_end_and_not_again() {
        let mut trace = RemnantTable::new(100);
        trace.add(key(1), &[remnant(1, 4)], START_US);
        assert!(trace.find(key(2), START_US).is_empty());
        let found = trace.find(key(1), START_US + MINUTE_US - 1);
        assert!(found.len() == 1 && found[0].amount == 4 && found[0].covers(remnant(1, 4)));
        assert!((1..10_000).all(|minutes| trace.find(key(1), START_US + 4_096 + minutes * MINUTE_US).is_empty()));
    }

    #[test]
    fn what_ends_earlier_is_kept_if_it_is_more() {
        let mut trace = RemnantTable::new(100);
        trace.add(key(1), &[remnant(3, 5), remnant(2, 9), remnant(1, 7)], START_US);
        let amounts: Vec<_> = trace.find(key(1), START_US).iter().map(|remnant| remnant.amount).collect();
        assert_eq!(amounts, [9, 5]);
    }

    #[test]
    fn a_full_trace_says_too_much_of_a_subject_but_never_too_little() {
        for max_subjects in [1, 5, 64, 1_000] {
            let mut trace = RemnantTable::new(max_subjects);
            for subject in 0..40 * max_subjects as u64 {
                let left = Remnant::until(START_US + MINUTE_US + subject, 1 + subject % 7);
                trace.add(key(subject), &[left], START_US);
                trace.add(alone(subject), &[left], START_US);
            }
            for subject in 0..40 * max_subjects as u64 {
                let found = trace.find(key(subject), START_US);
                assert!(found.iter().any(|remnant| remnant.amount > subject % 7));
            }
            assert!(size_of_val(&*trace.cells) <= max_subjects * SUBJECT_BYTES);
        }
    }

    #[test]
    fn what_is_of_one_subject_alone_takes_places_until_there_are_none_and_is_never_joined() {
        let (mut trace, mut kept) = (RemnantTable::new(64), Vec::new());
        for subject in 0..2_000 {
            trace.add(key(subject), &[remnant(1, 1)], START_US);
            if trace.add(alone(subject), &[remnant(2, 3), remnant(3, 2)], START_US) {
                kept.push(subject);
            }
        }
        assert!(kept.len() > 300, "{}", kept.len());
        for subject in kept {
            let amounts: Vec<_> = trace.find(alone(subject), START_US).iter().map(|remnant| remnant.amount).collect();
            assert_eq!(amounts, [3, 2]);
        }
        assert!((3_000..4_000).filter(|subject| !trace.find(alone(*subject), START_US).is_empty()).count() < 20);
    }

    #[test]
    fn a_subject_that_seems_to_be_another_takes_nothing_from_it() {
        let of = |second: u64, first: u64| TraceKey {
            own: second << (31 + MARK_BITS) | 5 << 32 | first,
            is_alone: false,
            is_named: false,
        };
        let mut trace = RemnantTable::new(64);
        for (key, minutes) in [(of(0, 2), 1), (of(3, 2), 2)] {
            trace.add(key, &[remnant(minutes, 1)], START_US);
        }
        assert!(!trace.find(of(0, 2), START_US).is_empty() && !trace.find(of(3, 2), START_US).is_empty());
    }

    #[test]
    fn among_ten_times_as_many_subjects_hardly_one_meets_what_others_have_left() {
        let (max_subjects, mut met) = (2_000, 0);
        let mut trace = RemnantTable::new(max_subjects);
        // As many have a tally, and have left nothing.
        let replaced = 9 * max_subjects as u64;
        for subject in 0..replaced {
            met += u64::from(!trace.find(key(subject), START_US).is_empty());
            trace.add(key(subject), &[remnant(1, 1)], START_US);
        }
        assert!(met * 100 <= replaced, "{met} of {replaced}");
    }

    #[test]
    fn what_subjects_share_grows_slowly_where_each_leaves_one_more_than_it_has_found() {
        const COUNT: u64 = 20;
        let (max_subjects, mut denied) = (2_000, 0);
        let mut trace = RemnantTable::new(max_subjects);
        let subjects = 40 * max_subjects as u64;
        for subject in 0..subjects {
            let amount = trace.find(key(subject), START_US).iter().map(|remnant| remnant.amount).max().unwrap_or(0);
            if amount < COUNT {
                trace.add(key(subject), &[remnant(1, amount + 1)], START_US);
            } else {
                denied += 1;
            }
        }
        assert!(denied * 10 < subjects * 6, "{denied} of {subjects}");
    }
}
