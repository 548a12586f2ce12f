//! Pauses that the holder of a permit begins and ends.

use std::time::Duration;

use super::pause::{PauseTicket, SaidPause};
use super::permit::Permit;
use crate::error::BackendError;
use crate::observe::log;

impl Permit {
    /// Pauses the main subject of this call, or [the one that the policy names](crate::PolicyBuilder::pausable_on), for
    /// `length`, because the other side said so: see [`PolicyBuilder::pausable`](crate::PolicyBuilder::pausable). The call
    /// stays counted, and its permit usable.
    ///
    /// It works as [`Check::pause`](crate::Check::pause) does, also for a call that is in shadow or that was admitted while
    /// Redis was away. Many calls may hear of one pause: if this process has sent one to Redis that ends as late, or is sending it,
    /// nothing is sent, and this returns at once.
    ///
    /// # Errors
    ///
    /// * The policy cannot be paused.
    /// * The backend did not answer within the deadline. This process honours the pause all the same, and sends it again with
    ///   later calls.
    pub async fn pause(&self, length: Duration) -> Result<(), BackendError> {
        self.pause_as(length.into()).await
    }

    async fn pause_as(&self, said: SaidPause) -> Result<(), BackendError> {
        match self.pausing() {
            Some(pausing) => pausing.pause(said).await,
            None => Err(not_pausable()),
        }
    }

    /// Pauses as [`pause`](Self::pause) does, and blocks the calling thread meanwhile: for functions that are not async.
    /// [`Check::blocking_decide`](crate::Check::blocking_decide) says on which threads.
    ///
    /// # Errors
    ///
    /// Fails as [`pause`](Self::pause) does.
    pub fn blocking_pause(&self, length: Duration) -> Result<(), BackendError> {
        self.pausing().map_or_else(|| Err(not_pausable()), |pausing| pausing.blocking_pause(length.into()))
    }

    /// Says that the other side has accepted this call. If it is the one that is tried after a pause, its subject is open for
    /// all again: see [`PolicyBuilder::pausable`](crate::PolicyBuilder::pausable). For any other call, nothing happens and
    /// nothing is sent.
    ///
    /// The call stays counted, and its permit usable. A permit that is dropped without this or a [pause](Self::pause) lets
    /// another call be tried. So does one that is refunded or settled: say this before.
    ///
    /// # Errors
    ///
    /// * The policy cannot be paused.
    /// * The backend did not answer within the deadline. Then it may be said again; if not, another call is tried when the permit is
    ///   dropped, or after a minute.
    pub async fn succeeded(&self) -> Result<(), BackendError> {
        match self.pausing() {
            Some(pausing) => pausing.succeeded().await,
            None => Err(not_pausable()),
        }
    }

    /// Says as [`succeeded`](Self::succeeded) does, and blocks the calling thread meanwhile: for functions that are not async.
    /// [`Check::blocking_decide`](crate::Check::blocking_decide) says on which threads.
    ///
    /// # Errors
    ///
    /// Fails as [`succeeded`](Self::succeeded) does.
    pub fn blocking_succeeded(&self) -> Result<(), BackendError> {
        self.pausing().map_or_else(|| Err(not_pausable()), PauseTicket::blocking_succeeded)
    }

    /// Whether the call is the one that is tried after a pause.
    pub(crate) fn is_probe(&self) -> bool {
        self.pausing().is_some_and(PauseTicket::is_probe)
    }

    /// Pauses for a function whose body has run, or says that it has succeeded if there is no length. A pause of which others do
    /// not hear is only logged.
    pub(crate) async fn pause_logged(&self, said: Option<SaidPause>) {
        match said {
            Some(said) => self.log_pause(self.pause_as(said).await),
            // If the store does not hear of it, another call is tried once this permit is dropped.
            None => drop(self.succeeded().await),
        }
    }

    /// Begins a pause of the subject, if the policy lets it be paused: this process honours it at once, and it is sent to the others
    /// in the background.
    pub(crate) fn begin_pause_logged(&self, said: SaidPause) {
        if let Some(pausing) = self.pausing() {
            self.log_pause(pausing.begin_pause(said));
        }
    }

    /// Says that the call has succeeded, of which others hear in the background.
    pub(crate) fn begin_success(&self) {
        if let Some(pausing) = self.pausing() {
            pausing.begin_success();
        }
    }

    pub(crate) fn blocking_pause_logged(&self, length: Option<Duration>) {
        match length {
            Some(length) => self.log_pause(self.blocking_pause(length)),
            None => drop(self.blocking_succeeded()),
        }
    }

    fn log_pause(&self, paused: Result<(), BackendError>) {
        if let (Err(error), Some(pausing)) = (paused, self.pausing()) {
            log::not_paused(pausing.policy_name(), &error);
        }
    }
}

#[cold]
fn not_pausable() -> BackendError {
    BackendError::misuse("the policy of this permit cannot be paused; make it pausable with `PolicyBuilder::pausable`")
}
