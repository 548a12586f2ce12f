//! The task that writes to the registry.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::report_no_place;
use crate::error::{BackendError, BackendErrorKind};
use crate::limiter::core::Core;
use crate::limiter::registrations::queue::PolicyText;
use crate::observe::log;
use crate::policy::Policy;
use crate::store::{Redis, Store};

impl Core {
    /// Lists a policy in Redis, in the background.
    #[cold]
    pub(in crate::limiter) fn register(self: &Arc<Self>, policy: &Policy, is_shadow: bool) {
        let changed = self.overrides.changed_by_file(policy);
        self.registrations.note(policy, changed.as_ref().unwrap_or(policy), is_shadow);
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
        // Without a runtime there was no decision either.
        let Ok(runtime) = Handle::try_current() else { return };
        if let Some(writer) = self.registrations.lock().start(Instant::now()) {
            runtime.spawn(write(Arc::clone(self), writer));
        }
    }

    /// Writes until there is nothing left to write, or until that fails.
    async fn write_registrations(&self, redis: &Redis) {
        let stored = redis.policies(&self.prefix);
        loop {
            let Some((entries, looking)) = self.registrations.lock().next() else { return };
            let written = entries.iter().map(|(name, description)| (&**name, &**description));
            let outcome = stored.register(written, &looking).await;
            let mut queue = self.registrations.lock();
            match outcome {
                Ok(registered) => {
                    if queue.written(entries, registered, Instant::now()) {
                        report_no_place(&mut queue);
                    }
                }
                Err(error) => {
                    drop(queue);
                    return self.not_registered(entries, &error);
                }
            }
        }
    }

    fn not_registered(&self, entries: Vec<PolicyText>, error: &BackendError) {
        let mut queue = self.registrations.lock();
        queue.failed(entries, Instant::now());
        match error.kind() {
            // The log has the outage itself.
            BackendErrorKind::Away => {}
            kind => {
                let is_final = matches!(kind, BackendErrorKind::Wrong | BackendErrorKind::Misuse);
                if is_final {
                    self.registrations.give_up(&mut queue);
                }
                if queue.is_first_failure() || is_final {
                    log::not_registered(error, is_final);
                }
            }
        }
    }
}

/// Writes in a task of its own, for which no call waits.
async fn write(core: Arc<Core>, writer: Arc<()>) {
    if let Store::Redis(redis) = &core.store {
        core.write_registrations(redis).await;
    }
    drop(writer);
}
