//! Hashes: small ones in the order in which their fields came, as servers keep them.

use super::hash_ordered::HashOrdered;

/// With more fields, or a longer text, a hash is no small one any more.
const MOST_FIELDS: usize = 512;
const LONGEST_TEXT: usize = 64;

/// A field and its text.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// Texts by field.
#[derive(Clone, Debug)]
pub(crate) enum HashValue {
    Small(Vec<(Vec<u8>, Vec<u8>)>),
    Large(HashOrdered<Vec<u8>>),
}

impl Default for HashValue {
    fn default() -> Self {
        Self::Small(Vec::new())
    }
}

impl HashValue {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Small(fields) => fields.len(),
            Self::Large(fields) => fields.len(),
        }
    }

    pub(crate) fn get(&self, field: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Small(fields) => fields.iter().find(|(known, _)| known == field).map(|(_, text)| text.as_slice()),
            Self::Large(fields) => fields.get(field).map(Vec::as_slice),
        }
    }

    /// Returns whether the field is new.
    pub(crate) fn set(&mut self, field: &[u8], text: &[u8]) -> bool {
        self.grow(field, text);
        match self {
            Self::Small(fields) => {
                if let Some((_, old)) = fields.iter_mut().find(|(known, _)| known == field) {
                    text.clone_into(old);
                    return false;
                }
                fields.push((field.to_vec(), text.to_vec()));
                true
            }
            Self::Large(fields) => fields.insert(field, text.to_vec()).is_none(),
        }
    }

    /// Returns whether the field was there.
    pub(crate) fn remove(&mut self, field: &[u8]) -> bool {
        match self {
            Self::Small(fields) => {
                let index = fields.iter().position(|(known, _)| known == field);
                index.map(|index| fields.remove(index)).is_some()
            }
            Self::Large(fields) => fields.remove(field).is_some(),
        }
    }

    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = (&[u8], &[u8])> + '_> {
        match self {
            Self::Small(fields) => Box::new(fields.iter().map(|(field, text)| (field.as_slice(), text.as_slice()))),
            Self::Large(fields) => Box::new(fields.iter().map(|(field, text)| (field, text.as_slice()))),
        }
    }

    /// Returns about so many fields behind a cursor, and the cursor to go on with. Of a small hash, it returns all.
    pub(crate) fn scan(&self, cursor: u64, count: usize) -> (u64, Vec<Pair<'_>>) {
        match self {
            Self::Small(_) => (0, self.iter().collect()),
            Self::Large(fields) => {
                let (next, found) = fields.scan(cursor, count);
                (next, found.into_iter().map(|(field, text)| (field, text.as_slice())).collect())
            }
        }
    }

    /// Makes a hash a large one that is small no longer with that field. It stays large.
    fn grow(&mut self, field: &[u8], text: &[u8]) {
        let Self::Small(fields) = self else { return };
        let is_full = fields.len() == MOST_FIELDS && fields.iter().all(|(known, _)| known != field);
        if is_full || field.len() > LONGEST_TEXT || text.len() > LONGEST_TEXT {
            let mut large = HashOrdered::default();
            fields.drain(..).for_each(|(field, text)| _ = large.insert(&field, text));
            *self = Self::Large(large);
        }
    }
}
