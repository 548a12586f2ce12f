//! The identity of a tally within one limiter, and its key, of at most [`KEY_BYTES`].
//!
//! The key is `<prefix>:<policy><layout>:<subject>`. In a policy with units, all tallies of a subject are in one slot of
//! a cluster: the tally of calls has that key, and those of units and leases have it as a hash tag, in the place of the
//! subject. A subject with a hash tag of its own has its slot by that. A key with another closing brace cannot be a hash
//! tag, so the subject follows a tag of its slot.

use std::hash::{BuildHasher, Hasher};

use arrayvec::ArrayString;

use super::slot::{Slot, hash_tag};
use crate::observe::opaque_debug;
use crate::policy::{LABEL_BYTES, LAYOUT_BYTES, Policy, RuleGroup};
use crate::subject::{NAME_BYTES, SUBJECT_BYTES, SubjectKey};
use crate::system::RandomState;

/// The most bytes of a limiter's prefix.
pub(crate) const PREFIX_BYTES: usize = 25;

/// The most bytes of what stands before a subject in a key, its two colons included.
const HEAD_BYTES: usize = PREFIX_BYTES + 1 + NAME_BYTES + LABEL_BYTES + LAYOUT_BYTES + 1;

/// The most bytes of a key: that of a unit has the head twice, and two braces.
const KEY_BYTES: usize = 2 * HEAD_BYTES + 2 + SUBJECT_BYTES;

/// The identity of a tally: the rule group that it is kept for, and the subject that is counted.
///
/// It equals what the key says after the prefix, but writes and copies no text.
#[derive(Clone, Copy)]
pub(crate) struct TallyId<'a> {
    pub(crate) group: &'a RuleGroup,
    pub(crate) subject: &'a SubjectKey,
}

impl<'a> TallyId<'a> {
    /// Returns where the pause of a subject is kept; `None` if it cannot be paused.
    #[inline]
    pub(crate) fn of_pause(policy: &'a Policy, subject: &'a SubjectKey) -> Option<Self> {
        Some(Self { group: policy.pause_group()?, subject })
    }
}

impl TallyId<'_> {
    /// Hashes what names the entry in memory that has the tally.
    #[inline]
    pub(crate) fn hash(&self, seed: &RandomState) -> u64 {
        let mut hasher = seed.build_hasher();
        hasher.write_u64(self.group.entry.hash);
        hasher.write(self.subject.as_bytes());
        hasher.finish()
    }

    #[inline]
    pub(crate) fn key(&self, prefix: &str) -> TallyKey {
        self.joined(prefix, TallyKey::join)
    }

    /// Returns what `join` makes of the parts of the key.
    #[inline]
    pub(crate) fn joined<T>(&self, prefix: &str, join: impl FnOnce(&[&str]) -> T) -> T {
        match &self.group.slot_segment {
            None => join(&[prefix, ":", &self.group.segment, ":", self.subject]),
            Some(slot) => self.joined_in_slot(prefix, slot, join),
        }
    }

    /// Joins the key in the slot of the tally with this segment.
    fn joined_in_slot<T>(&self, prefix: &str, slot: &str, join: impl FnOnce(&[&str]) -> T) -> T {
        let (segment, subject) = (&*self.group.segment, &**self.subject);
        if slot == segment || hash_tag(subject).is_some() {
            return join(&[prefix, ":", segment, ":", subject]);
        }
        if subject.contains('}') {
            let slot = Slot::of(TallyKey::new(prefix, slot, subject).as_str());
            return join(&[prefix, ":", segment, ":{", &slot.tag(), "}", subject]);
        }
        join(&[prefix, ":", segment, ":{", prefix, ":", slot, ":", subject, "}"])
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TallyKey(ArrayString<KEY_BYTES>);

impl TallyKey {
    /// Joins a limiter's prefix, the segment of a [rule group](crate::policy::RuleGroup) and a subject.
    #[inline]
    pub(crate) fn new(prefix: &str, segment: &str, subject: &str) -> Self {
        Self::join(&[prefix, ":", segment, ":", subject])
    }

    #[inline]
    fn join(parts: &[&str]) -> Self {
        let mut key = ArrayString::new();
        // Each part has a bounded share of the key, so all of them fit.
        for part in parts {
            key.push_str(part);
        }
        Self(key)
    }

    /// Returns a key that no tally has, because its form differs; `None` if it is too long.
    #[cfg(feature = "redis")]
    pub(crate) fn reserved(key: &str) -> Option<Self> {
        ArrayString::from(key).ok().map(Self)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

// Leaves out the values, which may be personal.
opaque_debug!(TallyKey);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::{Subject, escape_name};

    fn key(prefix: &str, policy: &str, subject: &Subject) -> String {
        TallyKey::new(prefix, &escape_name(policy), &subject.key()).as_str().to_owned()
    }

    #[test]
    fn a_key_has_these_exact_bytes() {
        assert_eq!(key("tallygate", "sms.send", &Subject::of("sms").and(138)), "tallygate:sms.send:sms:138");
        assert_eq!(key("app", "a::b", &Subject::everyone()), "app:a%3A%3Ab:");
        assert_eq!(key("app", "p", &Subject::of("{a}:/%!é ")), "app:p:%7Ba%7D%3A%2F%25%21%C3%A9%20");
        assert_eq!(key("app", "p", &Subject::of("A-Za_z0.9@+~")), "app:p:A-Za_z0.9@+~");
    }

    #[test]
    fn no_key_is_longer_than_200_bytes() {
        let prefix = "p".repeat(PREFIX_BYTES);
        let policy = format!("{}=01234567/01234567", &*escape_name(&"::".repeat(500)));
        let key = TallyKey::new(&prefix, &policy, &Subject::of("é".repeat(10_000)).key());
        assert_eq!(key.as_str().len(), 200);
    }
}
