//! A table of overrides by what they are for.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use super::active::ActiveOverride;
use super::target::{OverrideTarget, TargetKey};

#[derive(Default)]
pub(super) struct OverrideTable {
    seed: RandomState,
    entries: HashTable<OverrideEntry>,
}

pub(super) struct OverrideEntry {
    hash: u64,
    pub(super) target: OverrideTarget,
    pub(super) found: ActiveOverride,
}

impl OverrideTable {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, key: TargetKey<'_>) -> Option<&ActiveOverride> {
        let entry = self.entries.find(self.seed.hash_one(key), |entry| entry.target.key() == key)?;
        Some(&entry.found)
    }

    pub(super) fn put(&mut self, target: OverrideTarget, found: ActiveOverride) {
        self.remove(target.key());
        let entry = OverrideEntry { hash: self.seed.hash_one(target.key()), target, found };
        self.entries.insert_unique(entry.hash, entry, |entry| entry.hash);
    }

    pub(super) fn remove(&mut self, key: TargetKey<'_>) -> Option<ActiveOverride> {
        let found = self.entries.find_entry(self.seed.hash_one(key), |entry| entry.target.key() == key).ok()?;
        Some(found.remove().0.found)
    }

    /// Removes the overrides that are over at that time, and returns them.
    pub(super) fn remove_expired(&mut self, now_us: u64) -> Vec<OverrideEntry> {
        self.entries.extract_if(|entry| entry.found.is_expired(now_us)).collect()
    }

    /// When the first of them expires.
    pub(super) fn next_expiry_us(&self) -> Option<u64> {
        self.iter().filter_map(|entry| entry.found.expires_us).min()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &OverrideEntry> {
        self.entries.iter()
    }
}
