//! How a caller gets the decision: by a future, which is ready at its first poll where this process can decide, or by blocking
//! its thread.

use std::future::{Future, IntoFuture};
use std::mem;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Check;
use crate::decision::{DecidedBy, Decision, Permit, Rejection};
use crate::error::BackendError;
use crate::observe::{Observation, opaque_debug};
use crate::store::Outcome;
use crate::system::under_way::TaskKind;

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

impl Check<'_> {
    /// Decides the call as awaiting it does, and blocks the calling thread until it is decided: for functions that are not
    /// async.
    ///
    /// It works on every thread, within a runtime or without one. In memory, it decides on the calling thread. In
    /// Redis, and with [`wait`](Self::wait), it hands the call to a thread that the limiter owns, which starts with the
    /// first such call and has a connection of its own. A thread that runs async tasks runs none of them meanwhile:
    /// there, await the check.
    ///
    /// Blocking callers and awaiting callers wait in two separate queues. A wait takes real time, even if a test has
    /// paused tokio's clock.
    ///
    /// # Errors
    ///
    /// Fails with a [`BackendError`], as awaiting the check does. It also fails if the thread cannot be started, or if
    /// the call is made on that thread, within [`on_warning`](crate::LimiterBuilder::on_warning).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{Limiter, Policy, Rule, Subject};
    ///
    /// let limiter = Limiter::in_memory();
    /// let uploads = Policy::builder("uploads").rule(Rule::sliding_window(1, Duration::from_secs(60))).build()?;
    /// assert!(limiter.check(&uploads, &Subject::of("alice")).blocking_decide()?.is_allowed());
    /// assert!(!limiter.check(&uploads, &Subject::of("alice")).blocking_decide()?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn blocking_decide(mut self) -> Result<Decision, BackendError> {
        self.decide_here_or_on_thread()
    }

    /// Decides a call of a function that is not async, and returns as [`admitted`](Self::admitted) does.
    #[inline]
    pub(crate) fn blocking_admit(mut self) -> Result<Permit, Rejection> {
        let decided = self.decide_here_or_on_thread();
        self.admitted(decided)
    }

    #[inline]
    fn decide_here_or_on_thread(&mut self) -> Result<Decision, BackendError> {
        if !self.limiter().core.stack.is_remote()
            && self.options.wait.is_none()
            && let ControlFlow::Break(decided) = self.decide_at_once()
        {
            return decided;
        }
        self.decide_on_thread()
    }

    fn decide_on_thread(&mut self) -> Result<Decision, BackendError> {
        self.ask_for_report_if_context_wants_one();
        let core = &self.limiter().core;
        let patience = core.patience(self.policy()).filter(|_| self.options.wait.is_none());
        // This thread observes the decision: it may go on without the thread of the limiter, which may still decide.
        let observation = Arc::new(Observation::start(self.policy().name(), self.purpose()));
        let (check, shared) = (self.clone().into_owned(), Arc::clone(&observation));
        let decided =
            core.run_on_thread(TaskKind::Other, async move { check.decide_unobserved(&shared).await }, patience);
        let decided = decided.unwrap_or_else(|reason| {
            // The thread has failed to decide the call. Its policy says whether it is decided without the store.
            observation.within(|| self.attempt_without_store(reason))
        });
        let decided = self.finish(&observation, decided);
        if self.may_have_trials() { self.decide_trials_on_thread(decided) } else { decided }
    }
}
