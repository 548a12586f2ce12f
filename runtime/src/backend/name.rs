//! Which tally of a limiter.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::RandomState;

use crate::Policy;
use crate::key::Short;
use crate::policy::group::Group;

/// Names a tally within one limiter: the rules of a policy that it is kept for, and whom they count.
///
/// It says what a key says behind the prefix, and nothing is written or copied to say it.
#[derive(Clone, Copy)]
pub(crate) struct Name<'a> {
    pub(crate) policy: &'a Policy,
    /// Which of the policy's groups.
    pub(crate) index: usize,
    pub(crate) group: &'a Group,
    pub(crate) subject: &'a Short,
}

impl Name<'_> {
    /// Hashes what makes the name.
    #[inline]
    pub(crate) fn hash(&self, seed: &RandomState) -> u64 {
        let mut hasher = seed.build_hasher();
        hasher.write_u64(self.group.segment_hash);
        hasher.write(self.subject.as_bytes());
        hasher.finish()
    }

    /// Whether the rules of that policy's group have the same tally of that subject.
    #[inline]
    pub(crate) fn is(&self, policy: &Policy, index: usize, subject: &str) -> bool {
        **self.subject == *subject && (self.is_of(policy, index) || self.has_segment_of(policy, index))
    }

    /// Whether it is of that very group, with the same counts.
    #[inline]
    pub(crate) fn is_of(&self, policy: &Policy, index: usize) -> bool {
        self.policy.is(policy) && self.index == index
    }

    fn has_segment_of(&self, policy: &Policy, index: usize) -> bool {
        policy.groups().get(index).is_some_and(|group| group.segment == self.group.segment)
    }
}
