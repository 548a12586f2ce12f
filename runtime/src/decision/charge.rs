//! What an admitted call was counted as, and what takes it back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::recount::Recount;
use crate::error::BackendError;
use crate::policy::Policy;
use crate::subject::SubjectKey;

/// What an admitted call was counted as.
pub(crate) struct Charge {
    pub(crate) policy: Policy,
    pub(crate) subjects: Vec<SubjectKey>,
    pub(crate) cost: u64,
    pub(crate) admitted: AdmittedAt,
    /// Whether the call would have run all the same.
    #[cfg(feature = "web")]
    pub(crate) is_shadow: bool,
}

#[cfg(feature = "web")]
impl Charge {
    /// The subject that the rule at this position counts, if that is of this part of the call.
    pub(crate) fn subject_of(&self, position: usize, part: Option<usize>) -> Option<&SubjectKey> {
        let group = self.policy.group_of(position)?;
        self.subjects.get(group).filter(|_| part.is_none_or(|part| part == group))
    }
}

/// When a call was admitted, in microseconds since 1970 by the clock of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AdmittedAt {
    /// When all its subjects were charged.
    Once(u64),
    /// When each of its subjects was charged by a server of its own, in the order of the policy's groups.
    Each(Box<[u64]>),
}

impl AdmittedAt {
    /// When the subject of the group with this index was charged.
    pub(crate) fn us(&self, group: usize) -> u64 {
        match self {
            Self::Once(us) => *us,
            Self::Each(us) => us.get(group).copied().unwrap_or_default(),
        }
    }
}

/// The outcome of a refund, when it is known: whether it has changed anything.
pub(crate) type Refunded<'a> = Pin<Box<dyn Future<Output = Result<bool, BackendError>> + Send + 'a>>;

/// Recounts charges. A permit does not know the limiter that issued it, only that it can do this.
pub(crate) trait Refunder: Send + Sync {
    fn recount<'a>(&'a self, charge: &'a Charge, recount: Recount) -> Refunded<'a>;
}

/// What it takes to refund a permit.
pub(crate) struct RefundTicket {
    pub(crate) refunder: Arc<dyn Refunder>,
    pub(crate) charge: Charge,
}
