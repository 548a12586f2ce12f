//! A map in the order of the hashes of its keys: a scan of it survives any changes, as its cursor is a hash.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::ops::Bound::{Excluded, Unbounded};

use foldhash::quality::FixedState;

/// A map of byte strings.
#[derive(Clone, Debug)]
pub(crate) struct HashOrdered<V> {
    /// Keys of one hash share a place.
    places: BTreeMap<u64, Vec<(Vec<u8>, V)>>,
    len: usize,
}

impl<V> Default for HashOrdered<V> {
    fn default() -> Self {
        Self { places: BTreeMap::new(), len: 0 }
    }
}

/// The hash of a key, never 0: that is where a scan begins and ends.
fn place(key: &[u8]) -> u64 {
    FixedState::with_seed(0).hash_one(key).max(1)
}

impl<V> HashOrdered<V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&V> {
        let found = self.places.get(&place(key))?.iter().find(|(known, _)| known == key)?;
        Some(&found.1)
    }

    pub(crate) fn get_mut(&mut self, key: &[u8]) -> Option<&mut V> {
        let found = self.places.get_mut(&place(key))?.iter_mut().find(|(known, _)| known == key)?;
        Some(&mut found.1)
    }

    /// Returns the value that was there before.
    pub(crate) fn insert(&mut self, key: &[u8], value: V) -> Option<V> {
        let place = self.places.entry(place(key)).or_default();
        if let Some((_, old)) = place.iter_mut().find(|(known, _)| known == key) {
            return Some(std::mem::replace(old, value));
        }
        place.push((key.to_vec(), value));
        self.len += 1;
        None
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<V> {
        let place = place(key);
        let keys = self.places.get_mut(&place)?;
        let index = keys.iter().position(|(known, _)| known == key)?;
        let (_, value) = keys.swap_remove(index);
        if keys.is_empty() {
            self.places.remove(&place);
        }
        self.len -= 1;
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &V)> {
        self.places.values().flatten().map(|(key, value)| (key.as_slice(), value))
    }

    /// Returns about so many entries behind a cursor, and the cursor to go on with, which is 0 at the end.
    pub(crate) fn scan(&self, cursor: u64, count: usize) -> (u64, Vec<(&[u8], &V)>) {
        let mut found = Vec::new();
        for (place, keys) in self.places.range((Excluded(cursor), Unbounded)) {
            found.extend(keys.iter().map(|(key, value)| (key.as_slice(), value)));
            if found.len() >= count {
                let is_last = self.places.range((Excluded(*place), Unbounded)).next().is_none();
                return (if is_last { 0 } else { *place }, found);
            }
        }
        (0, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_finds_all_keys_that_stay_while_others_come_and_go() {
        let mut map = HashOrdered::default();
        let stays: Vec<_> = (0..100).map(|number| format!("stays-{number}")).collect();
        for key in &stays {
            map.insert(key.as_bytes(), ());
        }
        let (mut cursor, mut found, mut round) = (0, Vec::new(), 0);
        loop {
            let (next, keys) = map.scan(cursor, 7);
            found.extend(keys.iter().map(|(key, ())| String::from_utf8_lossy(key).into_owned()));
            map.insert(format!("comes-{round}").as_bytes(), ());
            map.remove(format!("comes-{}", round / 2).as_bytes());
            (cursor, round) = (next, round + 1);
            if cursor == 0 {
                break;
            }
        }
        assert!(stays.iter().all(|key| found.contains(key)));
        assert_eq!(map.len(), map.iter().count());
    }
}
