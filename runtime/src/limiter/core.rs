//! The state that the clones of a limiter share.

use std::future::ready;
use std::ops::ControlFlow;
use std::sync::Arc;
#[cfg(feature = "config")]
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::watch;

use super::denied::DeniedSubjects;
use super::registrations::Registrations;
use super::stack::{SharedOverrides, Stack};
use super::wait_queue::WaitQueues;
use crate::call::{Call, Lender, OnlyLease, PlainCall, StoredLease, TallyId};
use crate::clock::Clock;
use crate::context;
use crate::decision::{Charge, DecidedBy, Permit, Recount, Recounter, Recounting, Report, RuleStatus, Warning};
use crate::error::BackendError;
use crate::observe::{ChargeChange, ObservedRule, log};
use crate::policy::Policy;
use crate::sleepers::Sleepers;
use crate::store::{Answer, Decider as _, FreedTally, LayeredAnswer, LeaseHolder, Memory, Outcome, Pauses};
use crate::subject::filters::Secret;
#[cfg(feature = "config")]
use crate::system::home::BackgroundTask;
use crate::system::home::Runtimes;
use crate::system::under_way::{CountedTask, TaskKind};

/// The callback of the application for a subject that comes near a limit.
pub(super) type OnWarning = Arc<dyn Fn(&Warning<'_>) + Send + Sync>;

pub(crate) struct Core {
    pub(super) prefix: String,
    pub(super) secret: Secret,
    pub(super) stack: Stack,
    pub(super) pauses: Pauses,
    pub(super) wait_queues: WaitQueues,
    pub(super) sleepers: Arc<Sleepers>,
    pub(super) overrides: SharedOverrides,
    pub(super) clock: Clock,
    pub(super) on_warning: Option<OnWarning>,
    pub(super) denied_subjects: Option<DeniedSubjects>,
    pub(super) registrations: Registrations,
    #[cfg(feature = "config")]
    pub(super) file_watch: BackgroundTask,
    /// Whether the file limits a router.
    #[cfg(feature = "config")]
    pub(super) limits_requests: AtomicBool,
    pub(super) runtimes: Arc<Runtimes>,
}

impl Core {
    /// How long a plain function waits for an answer of the store; `None` if the store decides at once. A decision
    /// takes at most one deadline, and another one if there are rules in shadow. Only a blocked thread makes it take
    /// longer.
    pub(super) fn patience(&self, policy: &Policy) -> Option<Duration> {
        self.stack.store().deadline_of(policy).map(|deadline| 3 * deadline)
    }

    /// Starts a refresh of the overrides if it is due. Returns a receiver that changes when it ends, if the known
    /// overrides are too old to be used.
    pub(super) fn refresh_overrides(self: &Arc<Self>) -> Option<watch::Receiver<()>> {
        self.overrides.refresh(&self.runtimes, |refresh| {
            let core = Arc::clone(self);
            async move {
                core.overrides.run(refresh).await;
                core.go_on_registering();
            }
        })
    }

    /// Wakes the callers for which a recount may have made room, and tells the metrics and the listeners of the context
    /// what has changed.
    fn finish_recount(&self, charge: &Charge, recount: &Recount, has_changed: bool) {
        if self.sleepers.are_any() {
            self.wake_for_room(charge.counted(), recount);
        }
        if has_changed {
            count_changes(charge, recount);
            context::recounted(charge, recount);
        }
    }

    #[cold]
    fn wake_for_room(&self, counted: Call<'_>, recount: &Recount) {
        let makes_room = (0..counted.subjects.len()).any(|index| recount.gives_back(counted, index));
        if let Some(part) = recount.of(counted).filter(|_| makes_room) {
            self.sleepers.wake(part);
        }
    }

    /// Warns the application, the log and the metrics of each rule whose limit the subject comes near by this call.
    #[inline]
    pub(super) fn warn(&self, call: Call<'_>, report: &Report) {
        if let Some(share) = call.policy.warn_at()
            && !call.options.peek
        {
            let has_come_near = |status: &&RuleStatus| status.has_come_near(share, call.cost_for(status.position()));
            let near = report.rules().iter().filter(has_come_near);
            near.for_each(|status| self.warn_of(call, status));
        }
    }

    #[cold]
    fn warn_of(&self, call: Call<'_>, status: &RuleStatus) {
        let rule = ObservedRule::new(status.position(), status.rule());
        log::warned(call.policy.name(), rule);
        let subject = call.policy.group_of(status.position()).and_then(|group| call.subjects.get(group));
        if let (Some(on_warning), Some(subject)) = (&self.on_warning, subject) {
            on_warning(&Warning { policy: call.policy, subject, status });
        }
    }
}

impl Core {
    /// The answer of the tallies in this process, with the leases that the call has taken there.
    #[inline]
    pub(super) fn with_lease_here(self: &Arc<Self>, call: Call<'_>, answer: Answer) -> LayeredAnswer {
        LayeredAnswer::with_lease_here(answer, call, || Arc::clone(self) as _)
    }

    pub(super) async fn reset(&self, call: Call<'_>) -> Result<Option<Duration>, BackendError> {
        let reset = self.stack.reset(call).await;
        self.sleepers.wake(call);
        reset
    }

    pub(super) async fn ban(&self, call: Call<'_>, duration: Duration) -> Result<Option<Duration>, BackendError> {
        let banned = self.stack.ban(call, duration).await;
        // The new ban may end earlier than the previous one.
        self.sleepers.wake(call.part(0));
        banned
    }
}

impl Core {
    /// Decides a call by the tallies in this process whose permit holds a lease, under a concurrency limit alone, or may pause its
    /// subject; `None` if these do not decide it.
    ///
    /// # Errors
    ///
    /// The outcome of a denied call.
    pub(super) fn plain_permit(self: &Arc<Self>, call: PlainCall<'_>) -> Option<Result<Permit, Outcome>> {
        let memory = self.stack.here()?;
        match TallyId::of_pause(call.policy, call.subject) {
            Some(pause) => self.pausable(memory, call, pause),
            None => self.lease(memory, call),
        }
    }

    #[inline]
    fn lease(self: &Arc<Self>, memory: &Memory, call: PlainCall<'_>) -> Option<Result<Permit, Outcome>> {
        let PlainCall { policy, subject, .. } = call;
        let [group] = policy.groups() else { return None };
        let permit = |lease| {
            let counted = policy.observed().concurrent_call();
            Permit::with_lease(DecidedBy::Backend, OnlyLease::new(Arc::clone(self) as _, lease, counted))
        };
        let leased = memory.lease(TallyId { group, subject })?;
        Some(leased.map(permit).map_err(|wait| Outcome::denied(0, wait).with_position(policy)))
    }

    /// Decides a call whose subject may be paused; `None` if something is known of its pause.
    fn pausable(
        self: &Arc<Self>,
        memory: &Memory,
        call: PlainCall<'_>,
        pause: TallyId<'_>,
    ) -> Option<Result<Permit, Outcome>> {
        let PlainCall { policy, subject, cost } = call;
        if self.known_pause(pause).is_some() {
            return None;
        }
        Some(match memory.outcome(policy, subject, cost)? {
            Outcome::Admitted => Ok(Permit::counted(DecidedBy::Backend, None, Some(self.pause_ticket(policy, pause)))),
            denied => Err(denied),
        })
    }
}

impl Lender for Core {
    fn take_back(&self, lease: StoredLease) {
        if let Some(memory) = self.stack.here()
            && let Some(FreedTally { segment, subject }) = memory.give_back(lease, || self.sleepers.are_any())
        {
            self.sleepers.wake_one_of(&segment, &subject);
        }
    }
}

impl LeaseHolder for Core {
    fn take_back(&self, leases: Call<'_>) {
        if let Some(memory) = self.stack.here() {
            memory.give_back_all(leases);
        }
        self.sleepers.wake_one(leases);
    }
}

impl Recounter for Core {
    fn recount_here(&self, charge: &Charge, recount: &Recount) -> Option<bool> {
        let ControlFlow::Break(has_changed) = self.stack.recount_here(charge, recount) else { return None };
        self.finish_recount(charge, recount, has_changed);
        Some(has_changed)
    }

    fn recount<'a>(&'a self, charge: &'a Charge, recount: &'a Recount) -> Recounting<'a> {
        let Some(layers) = self.stack.layers() else { return Box::pin(ready(Ok(false))) };
        Box::pin(async move {
            let half = async |recount: &Recount| {
                let recounted = layers.below().recount(charge.counted(), recount, &charge.admitted).await;
                self.finish_recount(charge, recount, matches!(recounted, Ok(true)));
                recounted
            };
            let Some([late, paid]) = recount.halves(charge.counted()) else { return half(recount).await };
            // If the first fails, the second is made all the same.
            let (late, paid) = (half(&late).await, half(&paid).await);
            Ok(late? | paid?)
        })
    }

    fn blocking_recount(self: Arc<Self>, charge: Charge, recount: Recount) -> Result<bool, BackendError> {
        if let Some(has_changed) = self.recount_here(&charge, &recount) {
            return Ok(has_changed);
        }
        let (core, patience) = (Arc::clone(&self), self.patience(&charge.call.policy));
        let recounted = async move { core.recount(&charge, &recount).await };
        let heard = self.run_on_thread(TaskKind::Correction, recounted, patience);
        heard.inspect_err(|_| self.runtimes.background.note_failed_correction()).unwrap_or_else(Err)
    }

    fn runtimes(&self, charge: &Charge) -> Option<&Arc<Runtimes>> {
        let is_in_redis = self.stack.is_remote() && charge.counted_by == DecidedBy::Backend;
        is_in_redis.then_some(&self.runtimes)
    }

    fn begin_metering(&self) -> CountedTask {
        self.runtimes.background.begin(TaskKind::Meter)
    }
}

/// Counts what a recount has changed of what the call was charged in units.
fn count_changes(charge: &Charge, recount: &Recount) {
    let policy = &charge.call.policy;
    if policy.is_trial() {
        return;
    }
    for (index, unit) in policy.charged_units() {
        if let Some(change) = recount.change_of(charge.counted(), index) {
            policy.observed().charged(unit, ChargeChange::Added, change.beyond());
            policy.observed().charged(unit, ChargeChange::Removed, change.given_back());
        }
    }
}
