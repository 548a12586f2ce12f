//! Clearing a hash table bit by bit.

use hashbrown::HashTable;

/// Goes round the places of a table: this is the next one.
#[derive(Debug, Default)]
pub(crate) struct Broom(usize);

impl Broom {
    /// Looks at the next few places in turn and removes up to `most` of what is `removable` there; tells how many it was.
    pub(crate) fn sweep<T>(
        &mut self,
        table: &mut HashTable<T>,
        places: usize,
        most: usize,
        removable: impl Fn(&T) -> bool,
    ) -> usize {
        let mut removed = 0;
        for _ in 0..places.min(table.num_buckets()) {
            let place = if self.0 < table.num_buckets() { self.0 } else { 0 };
            self.0 = place + 1;
            if let Ok(entry) = table.get_bucket_entry(place)
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
