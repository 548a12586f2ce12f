//! The future of a call: ready at its first poll where this process can decide, or else awaited.

use std::future::{Future, IntoFuture};
use std::mem;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Check;
use crate::decision::{DecidedBy, Decision, Permit};
use crate::error::BackendError;
use crate::observe::Observation;
use crate::observe::opaque_debug;
use crate::store::Outcome;

/// The future of a [`Check`].
#[must_use = "futures do nothing unless awaited"]
pub struct Deciding<'a> {
    state: DecidingState<'a>,
    /// Set instead of the state where a call is decided at once: replacing the check would cost as much as dropping it.
    is_done: bool,
}

/// The answer to most calls. A constant is copied in one piece; when fields are written one by one and then moved
/// together, the move waits for each of them.
const ADMITTED: Poll<Result<Decision, BackendError>> =
    Poll::Ready(Ok(Decision::Allowed(Permit::plain(DecidedBy::Backend))));

#[allow(clippy::large_enum_variant, reason = "it is decided where it lies; boxing it would cost every call more")]
enum DecidingState<'a> {
    Start(Check<'a>),
    // Boxed, so that the future of an annotated function does not carry the state of a network call.
    Waiting(Pin<Box<dyn Future<Output = Result<Decision, BackendError>> + Send + 'a>>),
    Done,
}

impl<'a> IntoFuture for Check<'a> {
    type Output = Result<Decision, BackendError>;
    type IntoFuture = Deciding<'a>;

    #[inline]
    fn into_future(self) -> Deciding<'a> {
        Deciding { state: DecidingState::Start(self), is_done: false }
    }
}

impl Future for Deciding<'_> {
    type Output = Result<Decision, BackendError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Decision, BackendError>> {
        if let DecidingState::Start(check) = &self.state
            && !self.is_done
            && let Some(outcome) = check.outcome_at_once()
        {
            let ready = match outcome {
                Outcome::Admitted => ADMITTED,
                denied => Poll::Ready(Ok(check.plain_decision(denied))),
            };
            self.is_done = true;
            return ready;
        }
        self.poll_observed(context)
    }
}

impl Deciding<'_> {
    fn poll_observed(&mut self, context: &mut Context<'_>) -> Poll<Result<Decision, BackendError>> {
        if self.is_done {
            // A future that is polled after it was ready, by mistake of the caller, is never ready again.
            return Poll::Pending;
        }
        if let DecidingState::Start(check) = &mut self.state {
            if !check.limiter().core.stack.is_remote() {
                if let Some(outcome) = check.outcome_in_units_at_once() {
                    self.is_done = true;
                    return match outcome {
                        Outcome::Admitted => ADMITTED,
                        denied => Poll::Ready(Ok(check.decision_in_units(denied))),
                    };
                }
                if let Some(decision) = check.decision_here_at_once() {
                    self.is_done = true;
                    return Poll::Ready(Ok(decision));
                }
            }
            match check.decide_observed() {
                ControlFlow::Break(decided) => {
                    self.is_done = true;
                    return Poll::Ready(decided);
                }
                ControlFlow::Continue(observation) => self.start_waiting(observation),
            }
        }
        let DecidingState::Waiting(waiting) = &mut self.state else { return Poll::Pending };
        let polled = waiting.as_mut().poll(context);
        self.is_done = polled.is_ready();
        polled
    }

    fn start_waiting(&mut self, observation: Observation) {
        if let DecidingState::Start(check) = mem::replace(&mut self.state, DecidingState::Done) {
            self.state = DecidingState::Waiting(Box::pin(async move { check.decide_later(observation).await }));
        }
    }
}

opaque_debug!(Deciding<'_>);
