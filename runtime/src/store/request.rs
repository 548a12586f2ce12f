//! What is asked of a store.

use std::time::Duration;

use super::tally_id::TallyId;
#[cfg(feature = "redis")]
use super::tally_key::TallyKey;
use crate::policy::Policy;
use crate::subject::SubjectKey;

/// How one call is decided. The same options are handed down from the caller to the store.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct CallOptions {
    /// The weight of the call.
    pub(crate) cost: u64,
    /// Reports where every rule stands.
    pub(crate) report: bool,
    /// Decides only, and charges nothing.
    pub(crate) peek: bool,
    /// Issues a permit that can be refunded.
    pub(crate) refundable: bool,
    /// Waits for admission.
    pub(crate) wait: Option<WaitLimit>,
    /// Runs the call whatever is decided.
    pub(crate) shadow: bool,
}

/// How long a call waits for admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitLimit {
    Within(Duration),
    Unlimited,
}

impl CallOptions {
    /// A plain call of weight 1.
    pub(crate) const PLAIN: Self =
        Self { cost: 1, report: false, peek: false, refundable: false, wait: None, shadow: false };
}

/// One call to decide: charge every rule of every subject, or none.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) policy: &'a Policy,
    /// The subject of each of the policy's groups, in their order.
    pub(crate) subjects: &'a [SubjectKey],
    pub(crate) options: CallOptions,
}

impl<'a> Request<'a> {
    /// The tallies that decide the call, in the order of the policy's groups.
    pub(crate) fn tally_ids(self) -> impl Iterator<Item = TallyId<'a>> + Clone {
        let policy = self.policy;
        let groups = policy.groups().iter().enumerate();
        groups.zip(self.subjects).map(move |((index, group), subject)| TallyId { policy, index, group, subject })
    }

    /// The keys of these tallies, in the same order.
    #[cfg(feature = "redis")]
    pub(crate) fn keys<'k>(self, prefix: &'k str) -> impl Iterator<Item = TallyKey> + Clone + use<'a, 'k> {
        self.tally_ids().map(move |id| id.key(prefix))
    }
}
