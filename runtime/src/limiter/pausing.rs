//! Pausing subjects: in this process at once, and for all others in Redis.

use std::sync::Arc;
use std::time::Duration;

use super::core::Core;
use super::stack::Stack;
use crate::call::{Call, OwnedCall, TallyId};
use crate::decision::{Pauser, Pausing, Wait};
use crate::error::BackendError;
use crate::micros;
use crate::policy::Policy;
use crate::store::{KnownPause, Outcome, Pause};
use crate::system::under_way::TaskKind;

impl Core {
    /// Returns what this process knows of the pause of the call's subject; `None` if it is not paused.
    #[inline]
    pub(super) fn known_pause(&self, call: Call<'_>) -> Option<KnownPause> {
        let id = call.pause()?;
        self.pauses.find(id, self.clock.now_us())
    }

    /// Notes what the store has said about a subject of which a pause may be known.
    pub(super) fn note_pause(&self, call: Call<'_>, outcome: Outcome, known: Option<KnownPause>) {
        let Some(id) = call.pause().filter(|_| self.stack.is_remote()) else { return };
        match outcome {
            Outcome::Paused { retry_after } => {
                let now_us = self.clock.now_us();
                let left_us = retry_after.ends_us(now_us) - now_us;
                self.pauses.replace(id, Pause::new(now_us, left_us, now_us.saturating_add(self.denial_cache_us)));
            }
            // Another process has ended it.
            _ if known.is_some() => self.pauses.remove(id),
            _ => {}
        }
    }

    async fn pause_everywhere(&self, call: Call<'_>, length: Duration) -> Result<(), BackendError> {
        let (id, longest) = pause_of(call)?;
        let length = length.min(longest);
        // Rounded up, so that nothing is sent before the time.
        let length_us = micros::rounded_up(length);
        if length_us == 0 {
            return Ok(());
        }
        let now_us = self.clock.now_us();
        self.pauses.add(id, Pause::new(now_us, length_us, Pause::NOT_STORED));
        let Stack::Remote(layers) = &self.stack else { return Ok(()) };
        let left_us = layers.server().pause(call.policy, id, length_us).await?;
        let now_us = self.clock.now_us();
        self.pauses.replace(id, Pause::new(now_us, left_us, now_us.saturating_add(self.denial_cache_us)));
        Ok(())
    }

    /// Ends the pause of a call's subject, if there is one.
    pub(super) async fn resume(&self, call: Call<'_>) -> Result<(), BackendError> {
        let (id, _) = pause_of(call)?;
        self.pauses.remove(id);
        let resumed = match &self.stack {
            Stack::Here(_) => Ok(()),
            Stack::Remote(layers) => layers.server().resume(call.policy, id).await,
        };
        // A question that was on its way may have brought the pause back.
        self.pauses.remove(id);
        self.sleepers.wake(call);
        resumed
    }
}

impl Pauser for Core {
    fn pause<'a>(&'a self, call: Call<'a>, length: Duration) -> Pausing<'a> {
        Box::pin(self.pause_everywhere(call, length))
    }

    fn blocking_pause(self: Arc<Self>, call: OwnedCall, length: Duration) -> Result<(), BackendError> {
        let (core, patience) = (Arc::clone(&self), self.patience(&call.policy));
        let paused = async move { core.pause_everywhere(call.as_call(), length).await };
        self.run_on_thread(TaskKind::Correction, paused, patience).unwrap_or_else(Err)
    }
}

/// The outcome of a call whose subject is paused for that long.
pub(super) fn paused(known: KnownPause) -> Outcome {
    Outcome::Paused { retry_after: Wait::us(known.left_us) }
}

/// Returns the pause of the main subject of a call, and how long it lasts at most.
///
/// # Errors
///
/// The policy cannot be paused.
fn pause_of(call: Call<'_>) -> Result<(TallyId<'_>, Duration), BackendError> {
    call.pause().zip(call.policy.longest_pause()).ok_or_else(|| not_pausable(call.policy))
}

#[cold]
fn not_pausable(policy: &Policy) -> BackendError {
    let name = policy.name();
    BackendError::misuse(format!("subjects of policy `{name}` cannot be paused; let them by `PolicyBuilder::pausable`"))
}
