//! What an annotated function awaits: its admission, decided already or on its way.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::decision::{Permit, Rejection};
use crate::limiter::Check;
use crate::observe::Observation;
use crate::observe::opaque_debug;

/// The permit to run, which a call may lack that is not limited; or why the function must not run.
pub type Admitted = Result<Option<Permit>, Rejection>;

/// The admission of a call: known already where this process could decide it, else on its way.
///
/// It is all that the future of an annotated function holds of the call. It is a type of its own, and of this crate: the
/// state of an `async fn` would be worked out again by the compiler for every annotated function.
#[must_use = "a function may only run once the call is admitted"]
pub struct Admission(AdmissionState);

enum AdmissionState {
    /// `None` once it was taken.
    Known(Option<Admitted>),
    // Boxed, so that the future of an annotated function does not carry the state of a network call.
    Waiting(Pin<Box<dyn Future<Output = Admitted> + Send>>),
}

impl Admission {
    /// Stands for a call that is not limited.
    #[inline]
    pub fn skipped() -> Self {
        Self::known(Ok(None))
    }

    #[inline]
    pub(super) fn known(admitted: Admitted) -> Self {
        Self(AdmissionState::Known(Some(admitted)))
    }

    /// Decides the call, at least as far as this process can.
    #[inline]
    pub(super) fn begin(mut check: Check<'_>) -> Self {
        match check.decide_at_once() {
            ControlFlow::Break(decided) => Self::known(check.admitted(decided)),
            ControlFlow::Continue(observation) => Self::waiting(check, observation),
        }
    }

    #[cold]
    fn waiting(check: Check<'_>, observation: Observation) -> Self {
        let check = check.into_owned();
        Self(AdmissionState::Waiting(Box::pin(async move {
            let decided = check.decide_later(observation).await;
            check.admitted(decided)
        })))
    }
}

/// Runs the body of a function that is not async, of whose result more is made.
pub fn run_body<T>(body: impl FnOnce() -> T) -> T {
    body()
}

impl Future for Admission {
    type Output = Admitted;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Admitted> {
        match &mut self.0 {
            // Polled again after it was ready, which is the caller's mistake: it never is again.
            AdmissionState::Known(admitted) => admitted.take().map_or(Poll::Pending, Poll::Ready),
            AdmissionState::Waiting(waiting) => {
                let polled = waiting.as_mut().poll(context);
                if polled.is_ready() {
                    self.0 = AdmissionState::Known(None);
                }
                polled
            }
        }
    }
}

opaque_debug!(Admission);
