//! The leases of concurrent calls: held by the permit of a call, and given back when it is dropped.

mod task;

use std::sync::Arc;

use super::core::Core;
use crate::call::{Call, OwnedCall};
use crate::decision::{DecidedBy, Lease};
use crate::store::Store;

/// The leases of a call that are in this process. Dropping it gives them back.
struct LeasesInMemory {
    core: Arc<Core>,
    /// The part of the call that takes them.
    call: OwnedCall,
    decided_by: DecidedBy,
}

impl Core {
    /// Returns the leases that a call has taken in this process.
    pub(super) fn lease_in_memory(self: &Arc<Self>, call: Call<'_>, decided_by: DecidedBy) -> Option<Lease> {
        let call = OwnedCall::new(call.leases()?);
        call.policy.observed().lease_taken();
        Some(Box::new(LeasesInMemory { core: Arc::clone(self), call, decided_by }))
    }

    /// Wakes the callers of this process that wait for one of these leases.
    fn notify_waiters(&self, leases: Call<'_>) {
        self.lease_waiters.notify(leases.tally_ids().map(|id| id.key(&self.prefix)));
    }
}

impl Drop for LeasesInMemory {
    fn drop(&mut self) {
        let leases = self.call.as_call();
        match &self.core.store {
            Store::Memory(memory) => memory.give_back(leases),
            Store::Redis(_) if self.decided_by == DecidedBy::Standby => self.core.outage.standby.give_back(leases),
            Store::Redis(_) => {}
        }
        self.call.policy.observed().lease_given_back();
        self.core.notify_waiters(leases);
    }
}
