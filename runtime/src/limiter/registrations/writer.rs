//! The task that writes to the registry.

use std::sync::Arc;

use crate::limiter::core::Core;
use crate::lock::lock;
use crate::policy::{Description, Policy};
use crate::store::StoredPolicies;
use crate::system::TokioInstant;
use crate::system::home::RunningTask;
use crate::system::under_way::TaskKind;

impl Core {
    /// Lists a policy in Redis, in the background.
    #[cold]
    pub(in crate::limiter) fn register(self: &Arc<Self>, policy: &Policy, is_shadow: bool) {
        let changed = self.overrides.changed_by_file(policy);
        let in_force = changed.as_ref().unwrap_or(policy);
        let described = Description::of(in_force, in_force.shadow().unwrap_or(is_shadow)).with_secret(&self.secret);
        self.registrations.push(policy, described.with_plans(self.overrides.plans(policy)));
        self.start_registering();
    }

    /// Starts a renewal that is due, or retries a failed write.
    pub(in crate::limiter) fn go_on_registering(self: &Arc<Self>) {
        let Some(stored) = self.stack.store().policies() else { return };
        let connections = stored.connections();
        let mut queue = lock(&self.registrations.queue);
        if queue.is_renewal_due(TokioInstant::now(), connections) {
            self.registrations.renew_locked(&mut queue);
        }
        drop(queue);
        self.start_registering();
    }

    fn start_registering(self: &Arc<Self>) {
        let is_due = lock(&self.registrations.queue).is_due(TokioInstant::now());
        if is_due && let Some(task) = self.registrations.task.begin() {
            let core = Arc::clone(self);
            self.runtimes.spawn(TaskKind::Other, async move {
                if let Some(stored) = core.stack.store().policies() {
                    core.write_registrations(&stored, task).await;
                }
            });
        }
    }

    /// Writes until nothing is left, or until a write fails.
    async fn write_registrations(&self, stored: &StoredPolicies<'_>, mut task: RunningTask) {
        while let Some((entries, looking, same_task)) = self.registrations.next(task) {
            task = same_task;
            let written = entries.iter().map(|(name, description)| (&**name, &**description));
            match stored.register(written, &looking).await {
                Ok(registered) => {
                    let is_full = lock(&self.registrations.queue).written(entries, registered, TokioInstant::now());
                    if is_full {
                        self.registrations.report_no_place();
                    }
                }
                Err(error) => return self.registrations.failed(entries, &error),
            }
        }
    }
}
