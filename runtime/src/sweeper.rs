//! Removes expired entries from a hash table, a few at a time.

use hashbrown::HashTable;

/// A position in a hash table. It moves on with every sweep, so that sweeps visit the whole table in turn.
#[derive(Debug, Default)]
pub(crate) struct Sweeper {
    next: usize,
}

impl Sweeper {
    /// Visits the next buckets, and removes up to `most` entries that are `removable`. Returns how many it has removed.
    pub(crate) fn sweep<T>(
        &mut self,
        table: &mut HashTable<T>,
        buckets: usize,
        most: usize,
        mut removable: impl FnMut(&T) -> bool,
    ) -> usize {
        let mut removed = 0;
        for _ in 0..buckets.min(table.num_buckets()) {
            let bucket = if self.next < table.num_buckets() { self.next } else { 0 };
            self.next = bucket + 1;
            if let Ok(entry) = table.get_bucket_entry(bucket)
                && removable(entry.get())
            {
                entry.remove();
                removed += 1;
            }
            if removed == most {
                break;
            }
        }
        removed
    }
}
