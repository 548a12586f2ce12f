//! The entries of a table by policy: how many each has, so that a policy with many entries makes room by removing its own.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::quality::FixedState;
use hashbrown::HashTable;

use crate::policy;

#[derive(Debug, Default)]
pub(crate) struct Population {
    counts: HashMap<Inhabitant, usize, FixedState>,
    /// The bucket with which the next sweep begins. It moves on, so that sweeps visit the whole table in turn.
    next: usize,
}

/// The policy of an entry, by a hash of its name. No caller can choose the name, so the hash needs no seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inhabitant(u64);

impl Inhabitant {
    /// Returns the policy that has this segment.
    #[inline]
    pub(crate) fn of(segment: &str) -> Self {
        Self(FixedState::default().hash_one(policy::own_name(segment)))
    }
}

impl Population {
    #[inline]
    pub(crate) fn add(&mut self, policy: Inhabitant) {
        *self.counts.entry(policy).or_default() += 1;
    }

    pub(crate) fn remove(&mut self, policy: Inhabitant) {
        if let Some(count) = self.counts.get_mut(&policy) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.counts.remove(&policy);
            }
        }
    }

    /// Visits the next buckets of the table, and removes up to `most` of the entries for which `removable` returns their
    /// policy. Returns how many it has removed.
    #[inline]
    pub(crate) fn sweep<T>(
        &mut self,
        table: &mut HashTable<T>,
        buckets: usize,
        most: usize,
        mut removable: impl FnMut(&T) -> Option<Inhabitant>,
    ) -> usize {
        let mut removed = 0;
        for _ in 0..buckets.min(table.num_buckets()) {
            let bucket = self.next_of(table.num_buckets());
            removed += usize::from(self.remove_in(table, bucket, &mut removable));
            if removed == most {
                break;
            }
        }
        removed
    }

    /// Visits the next buckets of the table, up to `most_ranked` entries that have a rank, and removes the one with the least
    /// if `removable` returns its policy. Returns whether it has removed one.
    pub(crate) fn remove_least<T, R: Ord>(
        &mut self,
        table: &mut HashTable<T>,
        buckets: usize,
        most_ranked: usize,
        rank: impl Fn(&T) -> Option<R>,
        removable: impl FnOnce(&T) -> Option<Inhabitant>,
    ) -> bool {
        let (mut ranked, mut least) = (0, None);
        for _ in 0..buckets.min(table.num_buckets()) {
            let bucket = self.next_of(table.num_buckets());
            let Some(rank) = table.get_bucket(bucket).and_then(&rank) else { continue };
            if least.as_ref().is_none_or(|(other, _)| rank < *other) {
                least = Some((rank, bucket));
            }
            ranked += 1;
            if ranked == most_ranked {
                break;
            }
        }
        let Some((_, bucket)) = least else { return false };
        self.remove_in(table, bucket, removable)
    }

    /// Moves on to the next bucket, and returns it.
    fn next_of(&mut self, buckets: usize) -> usize {
        let bucket = if self.next < buckets { self.next } else { 0 };
        self.next = bucket + 1;
        bucket
    }

    fn remove_in<T>(
        &mut self,
        table: &mut HashTable<T>,
        bucket: usize,
        removable: impl FnOnce(&T) -> Option<Inhabitant>,
    ) -> bool {
        let Ok(entry) = table.get_bucket_entry(bucket) else { return false };
        let Some(policy) = removable(entry.get()) else { return false };
        entry.remove();
        self.remove(policy);
        true
    }

    #[cfg(test)]
    pub(crate) fn count(&self, policy: Inhabitant) -> usize {
        self.counts.get(&policy).copied().unwrap_or_default()
    }

    /// Returns the policy with the most entries: this one, unless another has more.
    pub(crate) fn most(&self, policy: Inhabitant) -> Inhabitant {
        self.most_without(policy, 0)
    }

    /// Returns the policy with the most entries, as [`most`](Self::most) does, where so many of this one are not counted.
    pub(crate) fn most_without(&self, policy: Inhabitant, spared: usize) -> Inhabitant {
        let own = self.counts.get(&policy).copied().unwrap_or_default().saturating_sub(spared);
        let more = self.counts.iter().filter(|&(_, &count)| count > own);
        more.max_by_key(|&(_, &count)| count).map_or(policy, |(&other, _)| other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_with_the_most_entries_is_known_whatever_came_and_went() {
        let [a, b, c] = ["a/w1m", "b=00000001/w1m", "c/w1m"].map(Inhabitant::of);
        let mut population = Population::default();
        assert_eq!(population.most(a), a);
        for policy in [a, b, b, c, c, c] {
            population.add(policy);
        }
        assert_eq!([a, b, c].map(|policy| population.most(policy)), [c; 3]);
        for policy in [c; 3] {
            population.remove(policy);
        }
        assert_eq!([a, b, c].map(|policy| population.most(policy)), [b; 3]);
        population.add(a);
        assert_eq!([a, b].map(|policy| population.most(policy)), [a, b]);
    }

    #[test]
    fn the_least_of_the_ranked_entries_is_removed_if_it_may_go() {
        let a = Inhabitant::of("a/w1m");
        let (mut population, mut table) = (Population::default(), HashTable::new());
        for number in [5, 1, 9, 3_u64] {
            population.add(a);
            table.insert_unique(number, number, |number| *number);
        }
        let mut remove = |may_go: bool| {
            let rank = |number: &u64| (*number != 1).then_some(*number);
            population.remove_least(&mut table, usize::MAX, 3, rank, |_| may_go.then_some(a))
        };
        assert_eq!([false, true, true, true, true].map(&mut remove), [false, true, true, true, false]);
        assert_eq!((table.iter().copied().collect::<Vec<_>>(), population.count(a)), (vec![1], 1));
    }

    #[test]
    fn all_subjects_and_layouts_of_a_policy_count_together() {
        let segments = ["p/w1m", "p=00000001/w1m", "p/01234567", "q/w1m"].map(Inhabitant::of);
        assert!(segments[0] == segments[1] && segments[1] == segments[2] && segments[2] != segments[3]);
    }
}
