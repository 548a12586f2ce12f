//! What the clones of a limiter share.

use std::time::Duration;

#[cfg(feature = "redis")]
use super::denial_cache::DenialCache;
use super::overrides::Overrides;
use super::wait_queue::WaitQueues;
use crate::clock::Clock;
use crate::decision::{Charge, Refunded, Refunder};
#[cfg(feature = "redis")]
use crate::store::Outcome;
use crate::store::{CallOptions, Request, Store};
use crate::subject::filters::Secret;

/// What the clones of a limiter share.
pub(crate) struct Core {
    pub(super) prefix: String,
    pub(super) secret: Secret,
    pub(super) store: Store,
    pub(super) wait_queues: WaitQueues,
    pub(super) overrides: Overrides,
    pub(super) clock: Clock,
    /// `None` where denials are not cached.
    #[cfg(feature = "redis")]
    denial_cache: Option<DenialCache>,
}

/// The settings of a limiter, as they were checked.
pub(super) struct Settings {
    pub(super) prefix: String,
    pub(super) secret: Secret,
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) denial_cache: Duration,
}

impl Core {
    #[cfg_attr(not(feature = "redis"), allow(unused_variables, reason = "only what Redis decides is cached"))]
    pub(super) fn new(settings: Settings) -> Self {
        let Settings { prefix, secret, store, clock, denial_cache } = settings;
        Self {
            prefix,
            secret,
            store,
            wait_queues: WaitQueues::default(),
            overrides: Overrides::default(),
            clock,
            #[cfg(feature = "redis")]
            denial_cache: DenialCache::new(denial_cache),
        }
    }

    /// Removes the overrides that have expired by now.
    pub(super) fn remove_expired_overrides(&self) {
        if self.overrides.any_expires() {
            self.overrides.remove_expired(self.store.now_us());
        }
    }

    /// Returns what a cached denial says of such a call. A refundable call asks the store: it depends on refunds of other
    /// processes.
    #[cfg(feature = "redis")]
    pub(super) fn cached_denial(&self, request: Request<'_>) -> Option<Outcome> {
        let cache = self.denial_cache.as_ref().filter(|_| !request.options.refundable)?;
        cache.get(request, self.clock.now_us())
    }

    /// Caches the outcome of a request that was sent at `asked_us`.
    #[cfg(feature = "redis")]
    pub(super) fn cache_outcome(&self, request: Request<'_>, outcome: Outcome, asked_us: u64) {
        if let Some(cache) = &self.denial_cache {
            cache.record(request, outcome, asked_us, self.clock.now_us());
        }
    }

    /// Removes the cached denials of such a call, so that the next one asks the store.
    #[cfg_attr(not(feature = "redis"), allow(clippy::unused_self, unused_variables, reason = "nothing is cached"))]
    pub(super) fn invalidate_denials(&self, request: Request<'_>) {
        #[cfg(feature = "redis")]
        if let Some(cache) = &self.denial_cache {
            cache.invalidate(request, self.clock.now_us());
        }
    }
}

impl Refunder for Core {
    fn refund<'a>(&'a self, charge: &'a Charge) -> Refunded<'a> {
        Box::pin(async move {
            let options = CallOptions { cost: charge.cost, ..CallOptions::PLAIN };
            let request = Request { policy: &charge.policy, subjects: &charge.subjects, options };
            let refunded = self.store.refund(request, charge.admitted_us).await;
            self.invalidate_denials(request);
            refunded
        })
    }
}
