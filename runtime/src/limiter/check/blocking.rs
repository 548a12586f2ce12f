//! Decisions for callers that cannot await.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::Check;
use crate::decision::{Decision, Permit, Rejection};
use crate::error::BackendError;
use crate::observe::Observation;
use crate::system::under_way::TaskKind;

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
