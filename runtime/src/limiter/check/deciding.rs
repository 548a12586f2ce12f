//! The future of a call: decided at its first poll where this process can, else awaited.

use std::fmt;
use std::future::{Future, IntoFuture, poll_fn};
use std::mem;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use super::Check;
use super::decide::plain_decision;
#[cfg(feature = "web")]
use crate::context;
use crate::decision::{DecidedBy, Decision, Permit, Rejection};
use crate::error::{BackendError, BackendErrorKind};
use crate::observe::{self, Observation, Purpose, log};
use crate::store::Outcome;

/// The future of a [`Check`].
#[must_use = "futures do nothing unless awaited"]
pub struct Deciding<'a> {
    state: State<'a>,
    /// Set rather than the state where a call is decided at once: to replace the check would cost as much as to drop it.
    is_done: bool,
}

/// The answer to most calls: a constant, as it is copied in one piece. Fields that are written one by one are waited for when
/// they are moved together.
const ADMITTED: Poll<Result<Decision, BackendError>> =
    Poll::Ready(Ok(Decision::Allowed(Permit::plain(DecidedBy::Backend))));

#[allow(clippy::large_enum_variant, reason = "it is decided where it lies; boxing it would cost every call more")]
enum State<'a> {
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
        Deciding { state: State::Start(self), is_done: false }
    }
}

impl Future for Deciding<'_> {
    type Output = Result<Decision, BackendError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Decision, BackendError>> {
        if let State::Start(check) = &self.state
            && !self.is_done
            && let Some(outcome) = check.outcome_at_once()
        {
            let ready = match outcome {
                Outcome::Admitted => ADMITTED,
                denied => {
                    Poll::Ready(Ok(plain_decision(check.policy(), denied, check.options.cost, DecidedBy::Backend)))
                }
            };
            self.is_done = true;
            return ready;
        }
        self.poll_observed(context)
    }
}

impl<'a> Deciding<'a> {
    /// Goes on with a call that could not be decided at once.
    fn waiting(check: Check<'a>, observation: Observation) -> Self {
        let waiting = Box::pin(async move { check.decide_observed(observation).await });
        Self { state: State::Waiting(waiting), is_done: false }
    }

    fn poll_observed(&mut self, context: &mut Context<'_>) -> Poll<Result<Decision, BackendError>> {
        if self.is_done {
            // Polled again after it was ready, which is the caller's mistake: it never is again.
            return Poll::Pending;
        }
        if let State::Start(check) = &self.state {
            match check.decide_observed_at_once() {
                ControlFlow::Break(decided) => {
                    self.is_done = true;
                    return Poll::Ready(decided);
                }
                ControlFlow::Continue(observation) => self.start_waiting(observation),
            }
        }
        let State::Waiting(waiting) = &mut self.state else { return Poll::Pending };
        let polled = waiting.as_mut().poll(context);
        self.is_done = polled.is_ready();
        polled
    }

    fn start_waiting(&mut self, observation: Observation) {
        if let State::Start(check) = mem::replace(&mut self.state, State::Done) {
            *self = Self::waiting(check, observation);
        }
    }
}

impl Check<'_> {
    /// Decides a call that this process can decide at once. Of any other, it returns the observation that has begun.
    #[inline]
    pub(crate) fn decide_at_once(&self) -> ControlFlow<Result<Decision, BackendError>, Observation> {
        match self.outcome_at_once() {
            Some(outcome) => {
                ControlFlow::Break(Ok(plain_decision(self.policy(), outcome, self.options.cost, DecidedBy::Backend)))
            }
            None => self.decide_observed_at_once(),
        }
    }

    /// Decides a call that runs only if it is admitted, and returns as [`admitted`](Self::admitted) does.
    #[cfg(feature = "web")]
    pub(crate) async fn admit(self) -> Result<Option<Permit>, Rejection> {
        let decided = match self.decide_at_once() {
            ControlFlow::Break(decided) => decided,
            ControlFlow::Continue(observation) => self.decide_observed(observation).await,
        };
        self.admitted(decided)
    }

    /// Returns the permit to run the call, or the rejection. In shadow, it runs whatever was decided, then without a permit.
    #[inline]
    pub(crate) fn admitted(&self, decided: Result<Decision, BackendError>) -> Result<Option<Permit>, Rejection> {
        match decided {
            Ok(Decision::Allowed(permit)) => Ok(Some(permit)),
            _ if self.options.shadow => Ok(None),
            Ok(Decision::Denied(denial)) => Err(denial.into()),
            Err(error) => Err(Rejection::unavailable(self.policy().name(), error)),
        }
    }

    /// The outcome of a plain call, where nobody listens, as is most often so: the caller makes a decision of it.
    #[inline]
    fn outcome_at_once(&self) -> Option<Outcome> {
        // A layer of the web collects the decisions of a request.
        let is_heard = cfg!(feature = "web") || Observation::is_heard(self.purpose());
        let is_counted = self.limiter().core.denied_subjects.is_some();
        if is_heard || is_counted || self.options.wait.is_some() { None } else { self.plain_outcome() }
    }

    fn decide_observed_at_once(&self) -> ControlFlow<Result<Decision, BackendError>, Observation> {
        let observation = Observation::start(self.policy().name(), self.purpose());
        if self.options.wait.is_none()
            && let Some(decided) = observation.within(|| self.decide_local())
        {
            self.finish(&observation, &decided);
            return ControlFlow::Break(decided);
        }
        ControlFlow::Continue(observation)
    }

    /// Decides a call that this process cannot decide at once.
    pub(crate) async fn decide_observed(&self, observation: Observation) -> Result<Decision, BackendError> {
        let decided = {
            let mut deciding = pin!(async {
                match self.options.wait {
                    // Boxed, as few calls wait.
                    Some(limit) => Box::pin(self.wait_for_admission(limit)).await,
                    None => self.decide_remote().await,
                }
            });
            poll_fn(|context| observation.within(|| deciding.as_mut().poll(context))).await
        };
        self.finish(&observation, &decided);
        decided
    }

    #[inline]
    fn purpose(&self) -> Purpose {
        match self.options {
            options if options.peek => Purpose::Peek,
            options if options.shadow => Purpose::Shadow,
            _ => Purpose::Call,
        }
    }

    fn finish(&self, observation: &Observation, decided: &Result<Decision, BackendError>) {
        let decided_by = match decided {
            Ok(decision) => decision.decided_by(),
            Err(_) => DecidedBy::Nobody,
        };
        let outcome = match decided {
            Ok(Decision::Allowed(_)) => observe::DecisionOutcome::Allowed,
            Ok(Decision::Denied(denial)) => observe::DecisionOutcome::Denied {
                kind: denial.kind().as_str(),
                rule: denial.rule().map(|rule| rule.position()),
            },
            Err(error) => observe::DecisionOutcome::Undecided(error),
        };
        observation.finish(self.policy().observed(), outcome, decided_by.as_str());
        match decided {
            Ok(Decision::Denied(denial)) => self.count_denied(denial),
            Err(error) if error.kind() == BackendErrorKind::Misuse => log::misuse(self.policy().name(), error),
            _ => {}
        }
        #[cfg(feature = "web")]
        if let (Ok(decision), false, false) = (decided, self.options.peek, self.options.shadow) {
            context::record_decision(self.policy(), decision);
        }
    }
}

impl fmt::Debug for Deciding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deciding").finish_non_exhaustive()
    }
}
