//! The leases of concurrent calls: held by the permit of a call, and given back when it is dropped.

mod asked;
mod kept;

use std::fmt;
use std::sync::Arc;

use super::core::Core;
use crate::decision::{DecidedBy, Lease};
use crate::policy::Policy;
use crate::store::{CallOptions, Request, Store};
use crate::subject::SubjectKey;

/// A call whose leases are to be given back.
pub(super) struct LeasedCall {
    policy: Policy,
    /// All subjects of the call.
    subjects: Box<[SubjectKey]>,
    options: CallOptions,
}

/// The leases of a call that are in this process. Dropping it gives them back.
struct InMemory {
    core: Arc<Core>,
    call: LeasedCall,
    is_standby: bool,
}

impl LeasedCall {
    /// The call of a request, if it takes leases.
    pub(super) fn of(request: Request<'_>) -> Option<Self> {
        request.leases()?;
        Some(Self { policy: request.policy.clone(), subjects: request.subjects.into(), options: request.options })
    }

    /// The request that decides the call.
    fn whole(&self) -> Request<'_> {
        Request::new(&self.policy, &self.subjects, self.options)
    }

    /// The request about the leases.
    pub(super) fn request(&self) -> Option<Request<'_>> {
        Request::new(&self.policy, &self.subjects, self.options).leases()
    }
}

impl Core {
    /// Returns the leases that a call has taken in this process.
    pub(super) fn leases_in_memory(self: &Arc<Self>, request: Request<'_>, decided_by: DecidedBy) -> Option<Lease> {
        let call = LeasedCall::of(request)?;
        call.policy.observed().lease_taken();
        Some(Box::new(InMemory { core: Arc::clone(self), call, is_standby: decided_by == DecidedBy::Standby }))
    }

    /// Wakes the callers of this process that wait for one of the leases of a call that is over.
    fn tell_released(&self, request: Request<'_>) {
        self.releases.tell(request.tally_ids().map(|id| id.key(&self.prefix)));
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        let Some(request) = self.call.request() else { return };
        match &self.core.store {
            Store::Memory(memory) => memory.give_back(request),
            Store::Redis(_) if self.is_standby => self.core.outage.standby.give_back(request),
            Store::Redis(_) => {}
        }
        self.call.policy.observed().lease_given_back();
        self.core.tell_released(request);
    }
}

impl fmt::Debug for LeasedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeasedCall").field("policy", &self.policy.name()).finish_non_exhaustive()
    }
}
