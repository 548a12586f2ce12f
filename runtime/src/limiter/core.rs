//! What the clones of a limiter share.

use std::sync::atomic::AtomicUsize;

use super::denial_cache::DenialCache;
use super::denied::DeniedSubjects;
use super::outage::Outage;
use super::overrides::Overrides;
use super::registrations::Registrations;
use super::releases::Releases;
use super::wait_queue::WaitQueues;
use super::warnings::Warnings;
use crate::clock::Clock;
#[cfg(feature = "web")]
use crate::context;
use crate::decision::{Charge, Recount, Refunded, Refunder};
use crate::store::{Outcome, Request, Store};
use crate::subject::filters::Secret;

/// What the clones of a limiter share.
pub(crate) struct Core {
    pub(super) prefix: String,
    pub(super) secret: Secret,
    pub(super) store: Store,
    pub(super) wait_queues: WaitQueues,
    pub(super) releases: Releases,
    pub(super) overrides: Overrides,
    pub(super) clock: Clock,
    pub(super) warnings: Warnings,
    /// `None` where they are not counted.
    pub(super) denied_subjects: Option<DeniedSubjects>,
    /// `None` where denials are not cached.
    pub(super) denial_cache: Option<DenialCache>,
    pub(super) outage: Outage,
    /// How many calls are being given back whose answers did not come.
    pub(super) late: AtomicUsize,
    pub(super) registrations: Registrations,
}

impl Core {
    /// Removes the overrides that have expired by now.
    pub(super) fn remove_expired_overrides(&self) {
        if self.overrides.any_expires() {
            self.overrides.remove_expired(self.store.now_us());
        }
    }

    /// Returns what a cached denial says of such a call. A refundable call asks the store: it depends on refunds of other
    /// processes.
    pub(super) fn cached_denial(&self, request: Request<'_>) -> Option<Outcome> {
        let cache = self.denial_cache.as_ref().filter(|_| !request.options.refundable)?;
        cache.get(request, self.clock.now_us())
    }

    /// Caches the outcome of a request that was sent at `asked_us`.
    pub(super) fn cache_outcome(&self, request: Request<'_>, outcome: Outcome, asked_us: u64) {
        if let Some(cache) = &self.denial_cache {
            cache.record(request, outcome, asked_us, self.clock.now_us());
        }
    }

    /// Removes the cached denials of such a call, so that the next one asks the store.
    pub(super) fn invalidate_denials(&self, request: Request<'_>) {
        if let Some(cache) = &self.denial_cache {
            cache.invalidate(request, self.clock.now_us());
        }
    }
}

impl Refunder for Core {
    fn recount<'a>(&'a self, charge: &'a Charge, recount: Recount) -> Refunded<'a> {
        Box::pin(async move {
            let refunded =
                self.store.refund(Request::recount(charge, recount.part), recount.used, &charge.admitted).await;
            // Cached denials are of whole calls.
            self.invalidate_denials(Request::recount(charge, None));
            #[cfg(feature = "web")]
            if let Ok(true) = refunded {
                context::record_recount(charge, recount);
            }
            refunded
        })
    }
}
