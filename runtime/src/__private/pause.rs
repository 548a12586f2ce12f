//! Pauses the subject of a call when the result of its body says so.

use std::future::Future;
use std::time::Duration;

use crate::decision::{Correction, Permit, SaidPause};

/// What `pause` says: how long the other side accepts no calls, or nothing.
#[diagnostic::on_unimplemented(
    message = "`pause` returns `{Self}`, which is not how long to pause",
    label = "expected `Option<Duration>` or `Duration`",
    note = "`None` pauses nothing"
)]
pub trait PauseLength {
    /// Returns the length of the pause, if there is one.
    fn length(self) -> Option<Duration>;
}

impl PauseLength for Duration {
    fn length(self) -> Option<Duration> {
        Some(self)
    }
}

impl PauseLength for Option<Duration> {
    fn length(self) -> Option<Duration> {
        self
    }
}

/// Returns how long to pause by the result of a call.
pub fn pause_by<T, L: PauseLength>(result: &T, length: impl FnOnce(&T) -> L) -> Option<Duration> {
    length(result).length()
}

/// Returns how long to pause. A call that is refunded has not succeeded, so it says zero in place of nothing.
#[must_use]
pub fn unless_refunded(length: Option<Duration>, due: &[Option<Correction<'_>>]) -> Option<Duration> {
    let is_refunded = due.iter().flatten().any(|due| !matches!(due, Correction::Settle(_)));
    length.or(is_refunded.then_some(Duration::ZERO))
}

/// Pauses the subject of a call, or says that the call has succeeded, which matters only after a pause; zero does
/// neither. The body has run, so a failure is only logged.
pub fn pause(permit: Option<&Permit>, length: Option<Duration>) -> impl Future<Output = ()> + Send + use<'_> {
    // A box keeps the pause out of the future of an annotated function.
    let pausing = permit.filter(|permit| length.is_some() || permit.is_probe());
    let pausing = pausing.map(|permit| Box::pin(permit.pause_logged(length.map(SaidPause::from))));
    async move {
        if let Some(pausing) = pausing {
            pausing.await;
        }
    }
}

/// Pauses the subject of a call of a function that is not async.
pub fn blocking_pause(permit: Option<&Permit>, length: Option<Duration>) {
    if let Some(permit) = permit.filter(|permit| length.is_some() || permit.is_probe()) {
        permit.blocking_pause_logged(length);
    }
}
