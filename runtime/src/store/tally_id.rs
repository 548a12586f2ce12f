//! The identity of a tally within one limiter.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::RandomState;

use super::tally_key::TallyKey;
use crate::policy::{Policy, RuleGroup};
use crate::subject::SubjectKey;

/// The identity of a tally: the rule group that it is kept for, and the subject that is counted.
///
/// It stands for what the key of the tally says after the prefix, without any text being written or copied.
#[derive(Clone, Copy)]
pub(crate) struct TallyId<'a> {
    pub(crate) policy: &'a Policy,
    /// The index of the group in the policy.
    pub(crate) index: usize,
    pub(crate) group: &'a RuleGroup,
    pub(crate) subject: &'a SubjectKey,
}

impl TallyId<'_> {
    /// Hashes the identity.
    #[inline]
    pub(crate) fn hash(&self, seed: &RandomState) -> u64 {
        let mut hasher = seed.build_hasher();
        hasher.write_u64(self.group.segment_hash);
        hasher.write(self.subject.as_bytes());
        hasher.finish()
    }

    /// Whether that group of that policy has the same tally for that subject.
    #[inline]
    pub(crate) fn matches(&self, policy: &Policy, index: usize, subject: &str) -> bool {
        **self.subject == *subject && (self.is_of(policy, index) || self.has_segment_of(policy, index))
    }

    /// Whether it is of that very group, with the same counts.
    #[inline]
    pub(crate) fn is_of(&self, policy: &Policy, index: usize) -> bool {
        self.policy.is(policy) && self.index == index
    }

    /// The key of the tally.
    pub(crate) fn key(&self, prefix: &str) -> TallyKey {
        TallyKey::new(prefix, &self.group.segment, self.subject)
    }

    fn has_segment_of(&self, policy: &Policy, index: usize) -> bool {
        policy.groups().get(index).is_some_and(|group| group.segment == self.group.segment)
    }
}
