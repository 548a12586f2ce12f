//! Listing the policies of this process in Redis, for people and tools: in the background, once and about daily.

mod queue;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use tokio::time::Instant;

use self::queue::{PolicyText, Queued, RegistrationQueue};
use super::background::{self, BackgroundTask, RunningTask};
use super::core::Core;
use crate::error::{BackendError, BackendErrorKind};
use crate::observe::log;
use crate::policy::{Description, NO_REGISTRY, Policy};
use crate::store::{MOST_POLICIES, Progress, Redis, Store};

/// The longest description that is stored.
const MOST_BYTES: usize = 4 * 1024;

/// The terms of all limiters of the process.
static TERMS: AtomicU64 = AtomicU64::new(1);

/// What this limiter has registered, and what it is to register.
pub(super) struct Registrations {
    /// In which a policy is registered once. Of no other limiter, or [`NO_REGISTRY`].
    term: AtomicU64,
    queue: Mutex<RegistrationQueue>,
    /// What writes them.
    task: BackgroundTask,
    /// Told once that there is no place.
    no_place: Once,
    /// Told once that writing fails.
    failure: Once,
}

impl Registrations {
    pub(super) fn new(is_on: bool) -> Self {
        let term = if is_on { next_term() } else { NO_REGISTRY };
        Self {
            term: AtomicU64::new(term),
            queue: Mutex::new(RegistrationQueue::new(Instant::now())),
            task: BackgroundTask::default(),
            no_place: Once::new(),
            failure: Once::new(),
        }
    }

    /// Whether there is nothing to do for that policy.
    #[inline]
    pub(super) fn is_done(&self, policy: &Policy) -> bool {
        policy.registration().is_done(self.term.load(Ordering::Relaxed))
    }

    /// Forgets what was registered, so that each policy is registered anew once it decides a call.
    #[cfg(feature = "config")]
    pub(super) fn renew(&self) {
        self.renew_locked(&mut self.lock());
    }

    fn renew_locked(&self, queue: &mut RegistrationQueue) {
        if self.term.load(Ordering::Relaxed) != NO_REGISTRY {
            self.term.store(next_term(), Ordering::Relaxed);
            queue.renew(Instant::now());
        }
    }

    /// Adds a policy that is to be registered, in the rules of the second one.
    fn push(&self, policy: &Policy, in_force: &Policy, is_shadow: bool) {
        let text = Description::of(in_force, is_shadow).write();
        // Locked until the policy has its term, as a renewal begins another one.
        let mut queue = self.lock();
        let queued = match text.len() {
            ..=MOST_BYTES => queue.push(policy.escaped_name(), &text, Instant::now()),
            _ => Queued::TooLong,
        };
        match queued {
            Queued::TooSoon => return,
            Queued::TooLong => log::description_too_long(policy.name()),
            Queued::NoPlace => self.report_no_place(),
            Queued::Done => {}
        }
        policy.registration().set_done(self.term.load(Ordering::Relaxed));
    }

    /// Returns what to write next, and where to look meanwhile. If there is nothing, the task ends before anything is added.
    fn next(&self, task: RunningTask) -> Option<(Vec<PolicyText>, Progress, RunningTask)> {
        let mut queue = self.lock();
        match queue.next() {
            Some((entries, looking)) => Some((entries, looking, task)),
            None => {
                drop(task);
                None
            }
        }
    }

    fn report_no_place(&self) {
        self.no_place.call_once(|| log::no_place_for_policies(MOST_POLICIES));
    }

    /// Registers nothing any more.
    fn give_up(&self, queue: &mut RegistrationQueue) {
        self.term.store(NO_REGISTRY, Ordering::Relaxed);
        queue.renew(Instant::now());
    }

    fn failed(&self, entries: Vec<PolicyText>, error: &BackendError) {
        let mut queue = self.lock();
        queue.failed(entries, Instant::now());
        match error.kind() {
            // The log has the outage itself.
            BackendErrorKind::Away => {}
            BackendErrorKind::Wrong | BackendErrorKind::Misuse => {
                self.give_up(&mut queue);
                log::not_registered(error, true);
            }
            BackendErrorKind::Unknown => self.failure.call_once(|| log::not_registered(error, false)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, RegistrationQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next_term() -> u64 {
    TERMS.fetch_add(1, Ordering::Relaxed)
}

impl Core {
    /// Lists a policy in Redis, in the background.
    #[cold]
    pub(in crate::limiter) fn register(self: &Arc<Self>, policy: &Policy, is_shadow: bool) {
        let changed = self.overrides.changed_by_file(policy);
        self.registrations.push(policy, changed.as_ref().unwrap_or(policy), is_shadow);
        self.start_registering();
    }

    /// Renews what is due, and attempts again what has failed.
    pub(in crate::limiter) fn go_on_registering(self: &Arc<Self>) {
        let Store::Redis(redis) = &self.store else { return };
        let connections = redis.policies(&self.prefix).connections();
        let mut queue = self.registrations.lock();
        if queue.is_renewal_due(Instant::now(), connections) {
            self.registrations.renew_locked(&mut queue);
        }
        drop(queue);
        self.start_registering();
    }

    fn start_registering(self: &Arc<Self>) {
        let is_due = self.registrations.lock().is_due(Instant::now());
        if is_due && let Some(task) = self.registrations.task.begin() {
            let core = Arc::clone(self);
            background::spawn(async move {
                if let Store::Redis(redis) = &core.store {
                    core.write_registrations(redis, task).await;
                }
            });
        }
    }

    /// Writes until there is nothing left to write, or until that fails.
    async fn write_registrations(&self, redis: &Redis, mut task: RunningTask) {
        let stored = redis.policies(&self.prefix);
        while let Some((entries, looking, same_task)) = self.registrations.next(task) {
            task = same_task;
            let written = entries.iter().map(|(name, description)| (&**name, &**description));
            match stored.register(written, &looking).await {
                Ok(registered) => {
                    if self.registrations.lock().written(entries, registered, Instant::now()) {
                        self.registrations.report_no_place();
                    }
                }
                Err(error) => return self.registrations.failed(entries, &error),
            }
        }
    }
}
