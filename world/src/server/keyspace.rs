//! Keys, their values and when they expire.

use super::hash_ordered::HashOrdered;
use super::hash_value::HashValue;
use super::sorted_set::SortedSet;

/// The keys of one database.
pub(crate) type Keyspace = HashOrdered<Entry>;

/// What a key holds.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    /// The last millisecond since 1970 at which the key is there.
    pub(crate) expires_ms: Option<i64>,
}

/// A value of one of the types that servers know.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(Vec<u8>),
    Hash(HashValue),
    SortedSet(SortedSet),
}

impl Entry {
    pub(crate) fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|last| now_ms > last)
    }
}

impl Value {
    /// The name of its type.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Hash(_) => "hash",
            Self::SortedSet(_) => "zset",
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Hash(fields) => fields.iter().map(|(field, text)| field.len() + text.len()).sum(),
            Self::SortedSet(set) => set.range(0..set.len()).iter().map(|(_, member)| member.len() + 8).sum(),
        }
    }
}
