//! What decides the calls of a limiter: tallies in this process, or the layers before Redis.
//!
//! | layer | at once | by awaiting | in `limiter/` |
//! | --- | --- | --- | --- |
//! | outage | decides while the server is known to be away | decides if the server fails to | `outage.rs` |
//! | prefetch | decides a call of one subject by its parts | decides for those of several subjects that have a part | `prefetch.rs` |
//! | cached denials | denies by them | records them | `cached_denials.rs` |
//! | leases | | holds the lease of a concurrent call | `leases.rs` |
//!
//! Each layer stands on a [`Decider`](crate::store::Decider), which is the layer below it or the store. Only
//! attempts ask the top layer. They first ask it whether the store is away.
//!
//! Overrides are no layer but a step before the layers, in `overrides.rs`: the rules in force are also what a denial, a
//! charge, a warning and the rules in shadow are about, and these are made above the layers. A call waits for old rules
//! to be read until its deadline at most, and always goes on to the layers, so that `outage.rs` decides it where the
//! store is away. A limit that an override closes is answered by the step, so no layer counts or takes ahead for it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tallygate_rules::OnOutage;

use super::cached_denials::CachedDenials;
use super::leases::RemoteLeases;
use super::outage::Outage;
use super::overrides::Overrides;
use super::prefetch::Prefetch;
use crate::call::Call;
use crate::clock::Clock;
use crate::decision::{Charge, DecidedBy, Recount};
use crate::error::BackendError;
use crate::sleepers::Sleepers;
use crate::store::{Decider as _, Memory, Redis, Standby, Store};
use crate::system::home::Runtimes;

/// The layers before Redis, the highest first.
pub(super) type Layers = Outage<Prefetch<CachedDenials<RemoteLeases<Redis>>>, Redis>;

/// The overrides, which are shared where the tallies are.
pub(super) type SharedOverrides = Overrides<Redis>;

/// What decides the calls of a limiter.
#[allow(clippy::large_enum_variant, reason = "each limiter has one")]
pub(super) enum Stack {
    /// Tallies in this process, which decide each call at once.
    Here(Memory),
    /// The layers before Redis.
    Remote(Layers),
}

impl Stack {
    /// Returns the store that has the tallies.
    pub(super) fn store(&self) -> Store<'_> {
        match self {
            Self::Here(memory) => Store::Memory(memory),
            Self::Remote(layers) => Store::Redis(layers.server()),
        }
    }

    #[inline]
    pub(super) fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// Returns the tallies in this process, if these decide the calls.
    #[inline]
    pub(super) fn here(&self) -> Option<&Memory> {
        match self {
            Self::Here(memory) => Some(memory),
            Self::Remote(_) => None,
        }
    }

    /// Returns the layers before Redis, if these decide the calls.
    #[inline]
    pub(super) fn layers(&self) -> Option<&Layers> {
        match self {
            Self::Here(_) => None,
            Self::Remote(layers) => Some(layers),
        }
    }

    /// See [`Decider::forget`](crate::store::Decider::forget).
    pub(super) fn forget(&self, call: Call<'_>) {
        if let Self::Remote(layers) = self {
            layers.below().forget(call);
        }
    }

    /// Recounts a call that this process has counted: `Break` with whether that has changed anything. `Continue` with the
    /// layers if Redis has counted it.
    #[inline]
    pub(super) fn recount_here(&self, charge: &Charge, recount: &Recount) -> ControlFlow<bool, &Layers> {
        match self {
            Self::Here(memory) => ControlFlow::Break(memory.recount(charge.counted(), recount, &charge.admitted)),
            Self::Remote(layers) if charge.counted_by == DecidedBy::Standby => {
                ControlFlow::Break(layers.recount_here(charge, recount))
            }
            Self::Remote(layers) => ControlFlow::Continue(layers),
        }
    }

    /// See [`Memory::reset`].
    pub(super) async fn reset(&self, call: Call<'_>) -> Result<Option<Duration>, BackendError> {
        match self {
            Self::Here(memory) => Ok(memory.reset(call)),
            Self::Remote(layers) => layers.reset(call).await,
        }
    }

    /// See [`Memory::ban`].
    pub(super) async fn ban(&self, call: Call<'_>, duration: Duration) -> Result<Option<Duration>, BackendError> {
        match self {
            Self::Here(memory) => memory.ban(call, duration),
            Self::Remote(layers) => layers.ban(call, duration).await,
        }
    }
}

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
    /// Puts the layers before Redis. `begin_refresh_if_old` begins to read the rules in force again if they are old, and
    /// returns whether that has to be awaited before a call is decided.
    pub(super) fn layers(
        self,
        redis: Arc<Redis>,
        begin_refresh_if_old: impl Fn() -> bool + Clone + Send + Sync + 'static,
    ) -> Layers {
        let Self { prefix, deadline, denial_cache, on_outage, standby, clock, sleepers, runtimes } = self;
        let leases =
            RemoteLeases::new(Arc::clone(&redis), prefix, clock.clone(), Arc::clone(&sleepers), Arc::clone(&runtimes));
        let denials = CachedDenials::new(leases, denial_cache, clock.clone(), begin_refresh_if_old.clone());
        let prefetch = Prefetch::new(denials, deadline, clock.clone(), sleepers, runtimes, begin_refresh_if_old);
        Outage::new(prefetch, redis, on_outage, standby, clock)
    }
}
