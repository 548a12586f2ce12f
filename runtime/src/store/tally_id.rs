//! The identity of a tally within one limiter.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use foldhash::quality::RandomState;

use super::tally_key::TallyKey;
use crate::policy::RuleGroup;
use crate::subject::SubjectKey;

/// The identity of a tally: the rule group that it is kept for, and the subject that is counted.
///
/// It stands for what the key of the tally says after the prefix, without any text being written or copied.
#[derive(Clone, Copy)]
pub(crate) struct TallyId<'a> {
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

    /// Whether its group has that segment.
    #[inline]
    pub(crate) fn has_segment(&self, segment: &Arc<str>) -> bool {
        // The versions of a policy share it.
        Arc::ptr_eq(&self.group.segment, segment) || self.group.segment == *segment
    }

    /// The key of the tally.
    pub(crate) fn key(&self, prefix: &str) -> TallyKey {
        TallyKey::new(prefix, &self.group.segment, self.subject)
    }
}
