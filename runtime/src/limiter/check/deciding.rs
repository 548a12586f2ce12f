//! The future of a call: decided at its first poll where this process can, else awaited.

use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::mem;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use super::Check;
use crate::decision::Decision;
use crate::error::BackendError;
use crate::observe::{Observation, Outcome, Purpose};

/// The future of a [`Check`].
#[must_use = "futures do nothing unless awaited"]
pub struct Deciding<'a>(State<'a>);

/// The result of a call.
pub(crate) type Decided = Result<Decision, BackendError>;

#[allow(clippy::large_enum_variant, reason = "it is decided where it lies; boxing it would cost every call more")]
enum State<'a> {
    Start(Check<'a>),
    // Boxed, so that the future of an annotated function does not carry the state of a network call.
    Waiting(Pin<Box<dyn Future<Output = Decided> + Send + 'a>>),
    Done,
}

impl<'a> IntoFuture for Check<'a> {
    type Output = Decided;
    type IntoFuture = Deciding<'a>;

    #[inline]
    fn into_future(self) -> Deciding<'a> {
        Deciding(State::Start(self))
    }
}

impl Future for Deciding<'_> {
    type Output = Decided;

    // The caller's, so that what is decided at once is written where the caller has it.
    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Decided> {
        if let State::Start(check) = &self.0 {
            match check.decide_at_once() {
                ControlFlow::Break(decided) => {
                    self.0 = State::Done;
                    return Poll::Ready(decided);
                }
                ControlFlow::Continue(observation) => self.start_waiting(observation),
            }
        }
        self.poll_waiting(context)
    }
}

impl<'a> Deciding<'a> {
    /// Goes on with a call that could not be decided at once.
    pub(crate) fn waiting(check: Check<'a>, observation: Observation) -> Self {
        Self(State::Waiting(Box::pin(check.decide_observed(observation))))
    }

    #[cold]
    fn start_waiting(&mut self, observation: Observation) {
        if let State::Start(check) = mem::replace(&mut self.0, State::Done) {
            *self = Self::waiting(check, observation);
        }
    }

    fn poll_waiting(&mut self, context: &mut Context<'_>) -> Poll<Decided> {
        // Polled again after it was ready, which is the caller's mistake: it never is again.
        let State::Waiting(waiting) = &mut self.0 else { return Poll::Pending };
        let polled = waiting.as_mut().poll(context);
        if polled.is_ready() {
            self.0 = State::Done;
        }
        polled
    }
}

impl Check<'_> {
    /// Decides a call that this process can decide at once. Of any other, it returns the observation that has begun.
    #[inline]
    pub(crate) fn decide_at_once(&self) -> ControlFlow<Decided, Observation> {
        let observation = self.observe();
        if self.options.wait.is_none()
            && let Some(decided) = observation.within(|| self.decide_local())
        {
            self.finish(&observation, &decided);
            return ControlFlow::Break(decided);
        }
        ControlFlow::Continue(observation)
    }

    /// Decides a call that this process cannot decide at once.
    async fn decide_observed(self, observation: Observation) -> Decided {
        let decided = {
            let mut deciding = pin!(async {
                match self.options.wait {
                    Some(limit) => self.wait_for_admission(limit).await,
                    None => self.decide_remote().await,
                }
            });
            poll_fn(|context| observation.within(|| deciding.as_mut().poll(context))).await
        };
        self.finish(&observation, &decided);
        decided
    }

    #[inline]
    fn observe(&self) -> Observation {
        let purpose = match self.options {
            options if options.peek => Purpose::Peek,
            options if options.shadow => Purpose::Shadow,
            _ => Purpose::Call,
        };
        Observation::start(self.policy.name(), purpose)
    }

    #[inline]
    fn finish(&self, observation: &Observation, decided: &Decided) {
        let outcome = match decided {
            Ok(Decision::Allowed(_)) => Outcome::Allowed,
            Ok(Decision::Denied(denial)) => {
                Outcome::Denied { kind: denial.kind().as_str(), rule: denial.rule().map(|rule| rule.position()) }
            }
            Err(error) => Outcome::Undecided(error),
        };
        observation.finish(self.policy.observed(), outcome);
    }
}

impl fmt::Debug for Deciding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deciding").finish_non_exhaustive()
    }
}
