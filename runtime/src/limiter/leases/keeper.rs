//! Keeps the leases of an admitted call: renews them, and has them given back when the permit of the call is dropped.

use std::mem;
use std::sync::Arc;

use tokio::runtime::Id;
use tokio::sync::oneshot;

use super::leased_store::{LeaseReturn, LeasedStore, longest_us};
use crate::call::{Call, OwnedCall};
use crate::error::BackendError;
use crate::observe::{GaugedCall, log};
use crate::store::RemoteStore;
use crate::system::Handle;
use crate::system::under_way::TaskKind;

/// The number of attempts to renew a lease while it lasts. Each has to be answered before the next one.
const ATTEMPTS: u64 = 8;

/// What renews the leases of a permit, and gives them back. If its runtime ends before, the thread of the limiter goes on.
pub(super) struct LeaseKeeper<S: RemoteStore> {
    shared: Arc<LeasedStore<S>>,
    leases: OwnedCall,
    /// Received when the permit is dropped; `None` afterwards.
    dropped: Option<oneshot::Receiver<Option<LeaseReturn<S>>>>,
    renew_us: u64,
    ends_us: u64,
    /// Until this time, Redis may still execute a renewal: one without an answer, or one that ran while the lease was given back.
    open_until_us: u64,
    /// Whether the thread goes on where this ends early: not on itself, and not when nothing is left to do.
    hands_over: bool,
}

/// Leases that a task keeps. Dropping it gives them back.
pub(super) struct RemoteLease<S: RemoteStore> {
    shared: Arc<LeasedStore<S>>,
    leases: OwnedCall,
    /// The runtime of the task.
    runtime: Id,
    dropped: Option<oneshot::Sender<Option<LeaseReturn<S>>>>,
    _counted: GaugedCall,
}

impl<S: RemoteStore> LeaseKeeper<S> {
    /// Keeps the leases of a call that was asked then.
    pub(super) fn new(
        shared: &Arc<LeasedStore<S>>,
        leases: Call<'_>,
        since_us: u64,
        dropped: oneshot::Receiver<Option<LeaseReturn<S>>>,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            renew_us: since_us.saturating_add(shortest_us(leases) / 2),
            ends_us: shared.clock.now_us().saturating_add(longest_us(leases)),
            leases: OwnedCall::new(leases),
            dropped: Some(dropped),
            open_until_us: 0,
            hands_over: true,
        }
    }

    /// Renews the leases until the permit is dropped, and then gives them back.
    pub(super) async fn run(mut self) {
        if let Some(returned) = self.renew().await {
            returned.run(self.ends_us).await;
        }
        if self.open_until_us > 0 {
            self.shared.clock.sleep_until(self.open_until_us).await;
            self.shared.give_back(self.leases.as_call(), self.ends_us).await;
        }
        self.hands_over = false;
    }

    /// Renews the leases until the permit is dropped. Returns what gives them back, if that is to be done here.
    async fn renew(&mut self) -> Option<LeaseReturn<S>> {
        let (shared, leases) = (&self.shared, self.leases.as_call());
        let clock = &shared.clock;
        let (shortest_us, longest_us) = (shortest_us(leases), longest_us(leases));
        let dropped = self.dropped.as_mut()?;
        let returned = loop {
            if let Some(returned) = clock.timeout_at(self.renew_us, &mut *dropped).await {
                break returned.ok().flatten();
            }
            let now_us = clock.now_us();
            let again_us = now_us.saturating_add(shortest_us / ATTEMPTS);
            let open_until_us = self.open_until_us;
            // What is not answered may be executed all the same, also if the runtime ends meanwhile.
            self.open_until_us = now_us.saturating_add(shared.patience_us(leases));
            self.ends_us = now_us.saturating_add(longest_us);
            let renewed = shared.below.renew_leases(leases);
            let renewed = clock.timeout_at(again_us, renewed).await.unwrap_or_else(|| Err(silent()));
            self.renew_us = if renewed.is_ok() { now_us.saturating_add(shortest_us / 2) } else { again_us };
            self.ends_us = clock.now_us().saturating_add(longest_us);
            match renewed {
                // An earlier renewal without an answer may still arrive.
                Ok(()) => self.open_until_us = open_until_us.max(now_us),
                Err(error) => {
                    self.open_until_us = clock.now_us().saturating_add(shared.patience_us(leases));
                    log::lease_not_renewed(leases.policy.name(), &error);
                }
            }
        };
        self.dropped = None;
        returned
    }
}

impl<S: RemoteStore> Drop for LeaseKeeper<S> {
    fn drop(&mut self) {
        let is_needed = self.dropped.is_some() || self.open_until_us > 0;
        if !mem::take(&mut self.hands_over) || !is_needed {
            return;
        }
        let (shared, leases) = (Arc::clone(&self.shared), self.leases.clone());
        let rest = Self { shared, leases, dropped: self.dropped.take(), ..*self };
        self.shared.runtimes.spawn_on_thread(TaskKind::Lease, rest.run());
    }
}

impl<S: RemoteStore> RemoteLease<S> {
    /// The leases that a call has taken, and what tells the task on that runtime that they were dropped.
    pub(super) fn new(
        shared: &Arc<LeasedStore<S>>,
        leases: Call<'_>,
        runtime: Id,
    ) -> (Self, oneshot::Receiver<Option<LeaseReturn<S>>>) {
        let (sender, dropped) = oneshot::channel();
        let (shared, counted) = (Arc::clone(shared), leases.policy.observed().concurrent_call());
        let leases = OwnedCall::new(leases);
        (Self { shared, leases, runtime, dropped: Some(sender), _counted: counted }, dropped)
    }
}

impl<S: RemoteStore> Drop for RemoteLease<S> {
    fn drop(&mut self) {
        let Some(dropped) = self.dropped.take() else { return };
        let returned = LeaseReturn::new(&self.shared, &self.leases);
        let is_at_home = Handle::try_current().is_ok_and(|runtime| runtime.id() == self.runtime);
        if is_at_home {
            // If the task is gone, the return is dropped here.
            drop(dropped.send(Some(returned)));
        } else {
            // The task may end before the return begins.
            let _counted = self.shared.runtimes.background.begin(TaskKind::Lease);
            drop(dropped.send(None));
            drop(returned);
        }
    }
}

fn silent() -> BackendError {
    BackendError::away("redis: no answer before the lease is to be renewed again")
}

/// How long the shortest of the leases lasts.
fn shortest_us(leases: Call<'_>) -> u64 {
    leases.groups().iter().filter_map(|group| group.lease_us).min().unwrap_or_default()
}
