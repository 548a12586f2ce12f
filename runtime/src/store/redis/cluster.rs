//! A cluster: each request goes to the node that serves its slot.

pub(super) mod refresh;
pub(super) mod route;
pub(super) mod slots;
pub(super) mod topology;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::join_all;

use crate::call::{Call, SLOTS, Slot};
use crate::error::{BackendError, BackendErrorKind};
use crate::observe::opaque_debug;
use crate::store::answer::Readiness;
use crate::store::redis::cluster::route::Route;
use crate::store::redis::cluster::topology::Topology;
use crate::store::redis::connection::address::{Address, Host};
use crate::store::redis::connection::attempt::longest_explained;
use crate::store::redis::node::{ClusterNode, Step};
use crate::store::redis::stored::{overrides_key, ping_key_in};
use crate::store::redis_types::Setup;
use crate::system::Instant;

/// The most keys that are tried to find one in a slot of each node: many times the number of slots.
const MOST_KEYS: u32 = 200_000;

pub(super) struct Cluster {
    topology: Arc<Topology>,
    pub(super) setup: Setup,
    /// The slot of the overrides. They expire by the clock of its node.
    home: Slot,
}

impl Cluster {
    pub(super) fn new(seeds: Vec<Host>, address: Address, setup: Setup) -> Arc<Self> {
        let home = Slot::of(&overrides_key(&setup.prefix));
        Arc::new(Self { topology: Topology::new(seeds, address, setup.clone()), setup, home })
    }

    /// Finds the nodes, and whether one of them can decide calls.
    pub(super) async fn reach(&self) -> Result<(), BackendError> {
        let longest = longest_explained(self.setup.deadline);
        // Long enough to ask one node after the other, and to report why they fail.
        self.topology.await_refresh(Instant::now() + 2 * longest).await?;
        let readiness = self.ping(Instant::now() + longest).await?;
        // A part of the cluster may be away for a while, but a mistake in the setup stays.
        let mistake = readiness.error().filter(|error| error.kind() == BackendErrorKind::Wrong);
        mistake.cloned().map_or(Ok(()), Err)
    }

    /// Finds out how many slots have a node that can decide calls. All nodes are asked at once.
    pub(super) async fn ping(&self, until: Instant) -> Result<Readiness, BackendError> {
        self.topology.learn(until).await?;
        let primaries = self.topology.primaries();
        let keys = self.keys_of(&primaries);
        let moved = || BackendError::away("redis: the slots of a node have moved; ask again");
        let asked = primaries.iter().zip(keys).map(|(_, key)| async move {
            let key = key.ok_or_else(moved)?;
            // Redirects depend on the slot of the key.
            self.ask(Slot::of(&key), until, |step| step.rehearse(&key)).await
        });
        let answers = join_all(asked).await;
        let (mut ready, mut error) = (0, None);
        for ((_, slots), answer) in primaries.iter().zip(answers) {
            match answer {
                Ok(()) => ready += slots,
                Err(another) => {
                    error = Some(match error {
                        Some(error) => BackendError::or_mistake(error, another),
                        None => another,
                    });
                }
            }
        }
        let unserved = || BackendError::away("redis: no node of the cluster serves some of the slots");
        let error = error.or_else(|| (ready < SLOTS).then(unserved));
        Readiness::of_slots(ready, SLOTS, error)
    }

    /// Returns a key that never exists for each of these nodes, in a slot that the node serves.
    pub(super) fn keys_of(&self, primaries: &[(Arc<ClusterNode>, u16)]) -> Vec<Option<String>> {
        let places: HashMap<_, _> =
            primaries.iter().enumerate().map(|(place, (primary, _))| (Arc::as_ptr(primary), place)).collect();
        let mut keys = vec![None; primaries.len()];
        let mut missing = keys.len();
        for key in (0..MOST_KEYS).map(|number| ping_key_in(&self.setup.prefix, number)) {
            if missing == 0 {
                break;
            }
            let owner = self.topology.known_owner(Slot::of(&key));
            let place = owner.and_then(|owner| places.get(&Arc::as_ptr(&owner)).copied());
            if let Some(none @ None) = place.and_then(|place| keys.get_mut(place)) {
                *none = Some(key);
                missing -= 1;
            }
        }
        keys
    }

    /// The time of the node that has the overrides, estimated by this process.
    pub(super) fn now_us(&self) -> u64 {
        let home = self.topology.known_owner(self.home);
        home.map_or_else(|| self.setup.clock.now_us(), |member| member.node.server().now_us())
    }

    /// How many connections were made to the node that serves this key; 0 if unknown.
    pub(super) fn connections(&self, key: &str) -> u64 {
        self.topology.known_owner(Slot::of(key)).map_or(0, |member| member.node.server().connector.connections())
    }

    /// Asks the node that serves a slot, and follows its redirects.
    pub(super) async fn ask<T, F>(&self, slot: Slot, until: Instant, ask: impl Fn(Step) -> F) -> Result<T, BackendError>
    where
        F: Future<Output = Result<T, BackendError>>,
    {
        Route::to(&self.topology, slot, until).await?.ask(ask).await
    }

    /// Asks which nodes serve slots now.
    #[cfg(feature = "admin")]
    pub(super) async fn primaries(&self, until: Instant) -> Result<Vec<Arc<ClusterNode>>, BackendError> {
        self.topology.await_refresh(until).await?;
        Ok(self.topology.primaries().into_iter().map(|(primary, _)| primary).collect())
    }

    /// The slot of a request whose subjects are in one slot.
    pub(super) fn slot_of(&self, request: Call<'_>) -> Slot {
        request.keys(&self.setup.prefix).next().map_or(self.home, |key| Slot::of(key.as_str()))
    }
}

opaque_debug!(Cluster, cluster => { prefix: cluster.setup.prefix });
