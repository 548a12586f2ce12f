//! The admission that an annotated function awaits.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::decision::{Permit, Rejection};
use crate::limiter::Check;
use crate::observe::Observation;
use crate::observe::opaque_debug;

/// The permit to run, or the reason why the function must not run. A call that is not limited has no permit.
pub type Admitted = Result<Option<Permit>, Rejection>;

/// The admission of a call. It is known at once if this process can decide the call.
///
/// The future of an annotated function holds nothing else of the call. The type is not the future of an `async fn`,
/// because the compiler would work out the state of that future again for every annotated function.
#[must_use = "a function may only run once the call is admitted"]
pub struct Admission(AdmissionState);

enum AdmissionState {
    /// `None` after it was taken.
    Known(Option<Admitted>),
    // A box keeps the state of a network call out of the future of an annotated function.
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

    /// Decides the call, or begins to if this process cannot decide it alone.
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

/// Runs the body of a function that is not async, if an epilogue follows it.
pub fn run_body<T>(body: impl FnOnce() -> T) -> T {
    body()
}

impl Future for Admission {
    type Output = Admitted;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Admitted> {
        match &mut self.0 {
            // A caller that polls again after the result makes a mistake: the future stays pending.
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
