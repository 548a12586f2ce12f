//! Lists the policies of this process in Redis, for people and tools: in the background, once and then about daily.

mod queue;
mod writer;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use self::queue::{PolicyText, RegistrationOutcome, RegistrationQueue};
use crate::bounds::{DESCRIPTION_BYTES, MOST_POLICIES};
use crate::error::{BackendError, BackendErrorKind};
use crate::lock::lock;
use crate::observe::{Quiet, ReportedOnce, log};
use crate::policy::{Description, NO_REGISTRY, Policy};
use crate::store::Progress;
use crate::system::TokioInstant;
use crate::system::home::{BackgroundTask, RunningTask};

/// The next term. It is unique among all limiters of the process.
static TERMS: AtomicU64 = AtomicU64::new(1);

/// The registered policies of this limiter, and those that it has to register.
pub(super) struct Registrations {
    /// A policy is registered once in a term. No two limiters share a term. [`NO_REGISTRY`] turns it off.
    term: AtomicU64,
    queue: Mutex<RegistrationQueue>,
    task: BackgroundTask,
    /// Reports once that there is no place for a policy.
    no_place: ReportedOnce,
    /// Reports once that writing fails.
    failure: ReportedOnce,
}

impl Registrations {
    pub(super) fn new(is_on: bool) -> Self {
        let term = if is_on { next_term() } else { NO_REGISTRY };
        Self {
            term: AtomicU64::new(term),
            queue: Mutex::new(RegistrationQueue::new(TokioInstant::now())),
            task: BackgroundTask::default(),
            no_place: ReportedOnce::new(),
            failure: ReportedOnce::new(),
        }
    }

    /// Whether the policy needs no registration.
    #[inline]
    pub(super) fn is_done(&self, policy: &Policy) -> bool {
        policy.registration().is_done(self.term.load(Ordering::Relaxed))
    }

    /// Starts a new term, so that each policy is registered anew when it decides a call.
    #[cfg(feature = "config")]
    pub(super) fn renew(&self) {
        self.renew_locked(&mut lock(&self.queue));
    }

    fn renew_locked(&self, queue: &mut RegistrationQueue) {
        if self.term.load(Ordering::Relaxed) != NO_REGISTRY {
            self.term.store(next_term(), Ordering::Relaxed);
            queue.renew(TokioInstant::now());
        }
    }

    /// Queues a policy for registration, as it is in force. Plans that would make its description too long are left out.
    fn push(&self, policy: &Policy, described: Description) {
        let text = Some(described.write()).filter(|text| text.len() <= DESCRIPTION_BYTES);
        let text = text.unwrap_or_else(|| described.with_plans(BTreeMap::new()).write());
        let _quiet = Quiet::begin();
        // Locked to the end: a renewal in between would begin another term, in which the policy would not be
        // registered.
        let mut queue = lock(&self.queue);
        let queued = match text.len() {
            ..=DESCRIPTION_BYTES => queue.push(policy.escaped_name(), &text, TokioInstant::now()),
            _ => RegistrationOutcome::TooLong,
        };
        match queued {
            RegistrationOutcome::TooLong => log::description_too_long(policy.name()),
            RegistrationOutcome::NoPlace => self.report_no_place(),
            RegistrationOutcome::Done => {}
        }
        policy.registration().set_done(self.term.load(Ordering::Relaxed));
    }

    /// Returns what to write next, and where the search continues. If there is nothing, the task ends under the lock,
    /// so that a later addition begins another task.
    fn next(&self, task: RunningTask) -> Option<(Vec<PolicyText>, Progress, RunningTask)> {
        let mut queue = lock(&self.queue);
        let Some((entries, looking)) = queue.next() else {
            drop(task);
            return None;
        };
        Some((entries, looking, task))
    }

    fn report_no_place(&self) {
        if self.no_place.is_first() {
            log::no_place_for_policies(MOST_POLICIES);
        }
    }

    fn failed(&self, entries: Vec<PolicyText>, error: &BackendError) {
        let _quiet = Quiet::begin();
        let mut queue = lock(&self.queue);
        queue.failed(entries, TokioInstant::now());
        match error.kind() {
            BackendErrorKind::Wrong | BackendErrorKind::Misuse | BackendErrorKind::Unidentified => {
                // From now on, nothing is registered.
                self.term.store(NO_REGISTRY, Ordering::Relaxed);
                *queue = RegistrationQueue::new(TokioInstant::now());
                log::not_registered(error, true);
            }
            BackendErrorKind::Unknown if self.failure.is_first() => log::not_registered(error, false),
            // The outage is reported elsewhere.
            BackendErrorKind::Away | BackendErrorKind::Unknown => {}
        }
    }
}

fn next_term() -> u64 {
    TERMS.fetch_add(1, Ordering::Relaxed)
}
