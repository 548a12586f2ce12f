//! What an annotated function awaits: the answer to a call, made already or on its way.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::decision::{Permit, Rejection};

/// The permit to run, which a call in shadow may lack; or why the function must not run.
pub(super) type Entered = Result<Option<Permit>, Rejection>;

/// The answer to a call: known already where this process could decide it, else on its way.
///
/// It is all that the future of an annotated function holds of the call. It is a type of its own, and of this crate: the
/// state of an `async fn` would be worked out again by the compiler for every annotated function.
#[must_use = "a function may only run once the call is admitted"]
pub struct Entering(State);

enum State {
    /// Nothing once it was taken.
    Known(Option<Entered>),
    // Boxed, so that the future of an annotated function does not carry the state of a network call.
    Waiting(Pin<Box<dyn Future<Output = Entered> + Send>>),
}

impl Entering {
    /// Stands for a call that is not limited.
    #[inline]
    pub fn skipped() -> Self {
        Self::known(Ok(None))
    }

    #[inline]
    pub(super) fn known(entered: Entered) -> Self {
        Self(State::Known(Some(entered)))
    }

    pub(super) fn waiting(entered: impl Future<Output = Entered> + Send + 'static) -> Self {
        Self(State::Waiting(Box::pin(entered)))
    }
}

impl Future for Entering {
    type Output = Entered;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Entered> {
        match &mut self.0 {
            // Polled again after it was ready, which is the caller's mistake: it never is again.
            State::Known(entered) => entered.take().map_or(Poll::Pending, Poll::Ready),
            State::Waiting(waiting) => {
                let polled = waiting.as_mut().poll(context);
                if polled.is_ready() {
                    self.0 = State::Known(None);
                }
                polled
            }
        }
    }
}

impl fmt::Debug for Entering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entering").finish_non_exhaustive()
    }
}
