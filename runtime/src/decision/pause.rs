//! What a permit needs to pause the subject of its call.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::call::{Call, OwnedCall};
use crate::error::BackendError;

/// Resolves when the subject is paused everywhere.
pub(crate) type Pausing<'a> = Pin<Box<dyn Future<Output = Result<(), BackendError>> + Send + 'a>>;

/// Pauses subjects. It is all that a permit knows of the limiter for that.
pub(crate) trait Pauser: Send + Sync {
    /// Pauses the main subject of a call: here at once, and elsewhere once this is awaited.
    fn pause<'a>(&'a self, call: Call<'a>, length: Duration) -> Pausing<'a>;

    /// Pauses for callers that cannot await.
    fn blocking_pause(self: Arc<Self>, call: OwnedCall, length: Duration) -> Result<(), BackendError>;
}

/// The limiter and the call of a permit whose policy can be paused.
pub(crate) struct PauseTicket {
    pauser: Arc<dyn Pauser>,
    call: OwnedCall,
}

impl PauseTicket {
    pub(crate) fn new(pauser: Arc<dyn Pauser>, call: Call<'_>) -> Self {
        Self { pauser, call: OwnedCall::new(Call { awaited: None, ..call }) }
    }

    pub(super) fn pause(&self, length: Duration) -> Pausing<'_> {
        self.pauser.pause(self.call.as_call(), length)
    }

    pub(super) fn blocking_pause(&self, length: Duration) -> Result<(), BackendError> {
        Arc::clone(&self.pauser).blocking_pause(self.call.clone(), length)
    }
}
