//! The list of what stands before Redis. In memory, nothing does.
//!
//! | layer | at once | by awaiting | in `limiter/` |
//! | --- | --- | --- | --- |
//! | outage | decides while the server is known to be away | decides if the server fails to | `outage.rs` |
//! | prefetch | decides a call of one subject by its parts | decides for some of several subjects | `prefetch.rs` |
//! | cached denials | deny | are recorded from the answer | `cached_denials.rs` |
//! | leases | | hold the lease of a concurrent call | `leases.rs` |
//!
//! Each layer is a [`Decider`](crate::store::Decider) on the one below it, and so is the store.
//!
//! Overrides are no layer but a step before the layers, in `overrides.rs`: the rules in force are also what a denial, a
//! charge, a warning and the rules in shadow are about, and these are made above the layers. A call waits for old rules
//! to be read until its deadline at most, and always goes on to the layers, so that `outage.rs` decides it where the
//! store is away. A limit that an override closes is answered by the step, so no layer counts or takes ahead for it.

use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::OnOutage;

use super::cached_denials::CachedDenials;
use super::leases::RemoteLeases;
use super::outage::Outage;
use super::overrides::Overrides;
use super::prefetch::Prefetch;
use crate::clock::Clock;
use crate::sleepers::Sleepers;
use crate::store::{Redis, Standby};
use crate::system::home::Runtimes;

/// The layers before Redis, the highest first.
pub(super) type Layers = Outage<Prefetch<CachedDenials<RemoteLeases<Redis>>>, Redis>;

/// The overrides, which are shared where the tallies are.
pub(super) type SharedOverrides = Overrides<Redis>;

pub(super) struct StackSettings {
    pub(super) prefix: String,
    pub(super) deadline: Duration,
    pub(super) denial_cache: Duration,
    pub(super) on_outage: OnOutage,
    pub(super) standby: Standby,
    pub(super) clock: Clock,
    pub(super) sleepers: Arc<Sleepers>,
    pub(super) runtimes: Arc<Runtimes>,
}

impl StackSettings {
    /// Puts the layers before Redis. `are_rules_old` says whether the rules in force have to be read before a call is
    /// decided.
    pub(super) fn layers(
        self,
        redis: &Arc<Redis>,
        are_rules_old: impl Fn() -> bool + Clone + Send + Sync + 'static,
    ) -> Layers {
        let Self { prefix, deadline, denial_cache, on_outage, standby, clock, sleepers, runtimes } = self;
        let leases =
            RemoteLeases::new(Arc::clone(redis), prefix, clock.clone(), Arc::clone(&sleepers), Arc::clone(&runtimes));
        let denials = CachedDenials::new(leases, denial_cache, clock.clone(), are_rules_old.clone());
        let prefetch = Prefetch::new(denials, deadline, clock.clone(), sleepers, runtimes, are_rules_old);
        Outage::new(prefetch, Arc::clone(redis), on_outage, standby, clock)
    }
}
