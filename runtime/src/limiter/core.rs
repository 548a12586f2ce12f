//! What the clones of a limiter share.

use std::sync::Arc;
#[cfg(all(feature = "config", feature = "web"))]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

#[cfg(feature = "config")]
use super::background::BackgroundTask;
use super::cached_denials::CachedDenials;
use super::denied::DeniedSubjects;
use super::lease_returns::LimiterId;
use super::ledgers::Ledgers;
use super::outage::Outage;
use super::overrides::Overrides;
use super::registrations::Registrations;
use super::sleepers::Sleepers;
use super::wait_queue::WaitQueues;
use crate::call::Call;
use crate::clock::Clock;
use crate::context;
use crate::decision::{Charge, Recount, Refunded, Refunder, Report, RuleStatus, Warning};
use crate::error::BackendError;
use crate::observe::{ObservedRule, log};
use crate::policy::Policy;
use crate::store::Store;
use crate::subject::filters::Secret;
use crate::system::home::Runtimes;

/// What an application does when a subject comes near a limit.
pub(super) type OnWarning = Arc<dyn Fn(&Warning<'_>) + Send + Sync>;

/// All that the clones of a limiter share.
pub(crate) struct Core {
    pub(super) id: LimiterId,
    pub(super) prefix: String,
    pub(super) secret: Secret,
    pub(super) store: Store,
    pub(super) wait_queues: WaitQueues,
    pub(super) sleepers: Sleepers,
    pub(super) overrides: Overrides,
    pub(super) clock: Clock,
    pub(super) on_warning: Option<OnWarning>,
    /// `None` where they are not counted.
    pub(super) denied_subjects: Option<DeniedSubjects>,
    pub(super) cached_denials: CachedDenials,
    /// The calls that were taken ahead.
    pub(super) ledgers: Ledgers,
    pub(super) outage: Outage,
    /// How many calls are being given back whose answers did not come.
    pub(super) late: AtomicUsize,
    pub(super) registrations: Registrations,
    #[cfg(feature = "config")]
    pub(super) file_watch: BackgroundTask,
    /// Whether a router is limited by the file.
    #[cfg(all(feature = "config", feature = "web"))]
    pub(super) limits_requests: AtomicBool,
    pub(super) runtimes: Arc<Runtimes>,
}

impl Core {
    /// How long a plain function waits for an answer of the store; `None` if that decides at once. The answer is there by the
    /// deadline, unless something keeps the thread that asks.
    pub(super) fn patience(&self, policy: &Policy) -> Option<Duration> {
        self.store.deadline_of(policy).map(|deadline| 2 * deadline)
    }

    /// Removes the overrides that have expired by now.
    pub(super) fn remove_expired_overrides(&self) {
        if self.overrides.any_expires() {
            self.overrides.remove_expired(self.store.now_us());
        }
    }

    /// Wakes the callers of this process that wait for these tallies: there may be room.
    pub(super) fn wake(&self, call: Call<'_>) {
        self.sleepers.wake(call.keys(&self.prefix));
    }

    /// Wakes the callers that wait for room which a recount may have made, and tells the listeners of the context what has changed.
    pub(super) fn finish_recount(&self, charge: &Charge, recount: Recount, has_changed: bool) {
        if recount.used < charge.call.options.cost {
            self.wake(charge.counted(recount.part));
        }
        if has_changed {
            context::recounted(charge, recount);
        }
    }

    /// Tells the application, the log and the metrics of each rule near whose limit an admitted call has brought its subject.
    #[inline]
    pub(super) fn warn(&self, call: Call<'_>, report: &Report) {
        if let Some(share) = call.policy.warn_at()
            && !call.options.peek
        {
            let near = report.rules().iter().filter(|status| status.has_come_near(share, call.options.cost));
            near.for_each(|status| self.warn_of(call, status));
        }
    }

    #[cold]
    fn warn_of(&self, call: Call<'_>, status: &RuleStatus) {
        let rule = ObservedRule { position: status.position(), name: status.rule().name() };
        log::warned(call.policy.name(), rule);
        let subject = call.policy.group_of(status.position()).and_then(|group| call.subjects.get(group));
        if let (Some(on_warning), Some(subject)) = (&self.on_warning, subject) {
            on_warning(&Warning { policy: call.policy, subject, status });
        }
    }
}

impl Refunder for Core {
    fn recount<'a>(&'a self, charge: &'a Charge, recount: Recount) -> Refunded<'a> {
        Box::pin(async move {
            let recounted = self.store.recount(charge.counted(recount.part), recount.used, &charge.admitted).await;
            // Cached denials are of whole calls.
            self.cached_denials.invalidate(charge.counted(None));
            self.finish_recount(charge, recount, matches!(recounted, Ok(true)));
            recounted
        })
    }

    fn blocking_recount(self: Arc<Self>, charge: Charge, recount: Recount) -> Result<bool, BackendError> {
        let recounted = self.store.recount_at_once(charge.counted(recount.part), recount.used, &charge.admitted);
        if let Some(has_changed) = recounted {
            self.finish_recount(&charge, recount, has_changed);
            return Ok(has_changed);
        }
        let (core, patience) = (Arc::clone(&self), self.patience(&charge.call.policy));
        let recounted = async move { core.recount(&charge, recount).await };
        self.run_on_thread(recounted, patience).unwrap_or_else(Err)
    }

    fn runtimes(&self) -> Option<&Arc<Runtimes>> {
        (!self.store.decides_at_once()).then_some(&self.runtimes)
    }
}
