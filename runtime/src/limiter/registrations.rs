//! Listing the policies of this process in Redis, for people and tools: in the background, once and about daily.

mod noted;
mod queue;
mod writer;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use self::noted::Noted;
use self::queue::RegistrationQueue;
use crate::observe::log;
use crate::policy::{Description, NO_REGISTRY, Policy};
use crate::store::MOST_POLICIES;

/// The longest description that is stored.
const MOST_BYTES: usize = 4 * 1024;

/// The terms of all limiters of the process.
static TERMS: AtomicU64 = AtomicU64::new(1);

/// What this limiter has registered, and what it is to register.
pub(super) struct Registrations {
    /// In which a policy is registered once. Of no other limiter, or [`NO_REGISTRY`].
    term: AtomicU64,
    queue: Mutex<RegistrationQueue>,
}

impl Registrations {
    pub(super) fn new(is_on: bool) -> Self {
        let term = if is_on { next_term() } else { NO_REGISTRY };
        Self { term: AtomicU64::new(term), queue: Mutex::new(RegistrationQueue::new(Instant::now())) }
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

    /// Takes a policy down to be registered, in the rules of the second one.
    fn note(&self, policy: &Policy, in_force: &Policy, is_shadow: bool) {
        let text = Description::of(in_force, is_shadow).write();
        let mut queue = self.lock();
        let noted = match text.len() {
            ..=MOST_BYTES => queue.note(policy.escaped_name(), &text, Instant::now()),
            _ => Noted::TooLong,
        };
        if noted != Noted::NotNow {
            policy.registration().set_done(self.term.load(Ordering::Relaxed));
        }
        match noted {
            Noted::TooLong => log::description_too_long(policy.name()),
            Noted::NoPlace => report_no_place(&mut queue),
            Noted::Done | Noted::NotNow => {}
        }
    }

    /// Registers nothing any more.
    fn give_up(&self, queue: &mut RegistrationQueue) {
        self.term.store(NO_REGISTRY, Ordering::Relaxed);
        queue.renew(Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, RegistrationQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next_term() -> u64 {
    TERMS.fetch_add(1, Ordering::Relaxed)
}

fn report_no_place(queue: &mut RegistrationQueue) {
    if queue.is_first_without_place() {
        log::no_place_for_policies(MOST_POLICIES);
    }
}
