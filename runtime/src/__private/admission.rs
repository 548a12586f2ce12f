//! The admission that an annotated function awaits.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::call::{Call, CallOptions};
use crate::decision::{DecidedBy, Permit, Rejection};
use crate::limiter::{Check, Limiter};
use crate::observe::Observation;
use crate::observe::opaque_debug;
use crate::policy::Policy;
use crate::store::Outcome;
use crate::subject::Subject;

/// The permit to run, or the reason why the function must not run. A call that is not limited has no permit.
pub type Admitted = Result<Option<Permit>, Rejection>;

/// The admission of a call. It is known at once if this process can decide the call.
///
/// What the attribute writes asks which of both it is, and awaits only a call that waits: to poll an answer that is known would take
/// a tenth of a call.
#[must_use = "a function may only run once the call is admitted"]
pub enum Admission {
    Known(Admitted),
    Waiting(WaitingCall),
}

/// A call that this process cannot decide alone. It is ready when the call is decided.
///
/// The type is not the future of an `async fn`, because the compiler would work out the state of that future again for
/// every annotated function. A box keeps the state of a network call out of the future of such a function.
pub struct WaitingCall(Pin<Box<dyn Future<Output = Admitted> + Send>>);

impl Admission {
    /// Stands for a call that is not limited.
    #[inline]
    pub fn skipped() -> Self {
        Self::known(Ok(None))
    }

    #[inline]
    pub(super) const fn known(admitted: Admitted) -> Self {
        Self::Known(admitted)
    }

    /// Awaits the answer, as the code of the attribute does.
    #[cfg(test)]
    pub(crate) async fn decided(self) -> Admitted {
        match self {
            Self::Known(admitted) => admitted,
            Self::Waiting(waiting) => waiting.await,
        }
    }

    /// Decides a call without options, or begins to.
    // Most calls are decided before any check is made.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "it has two callers, so that the compiler would not do it")]
    pub(super) fn of_plain(limiter: &Limiter, policy: &Policy, subject: &Subject) -> Self {
        match subject.whole().and_then(|subject| limiter.plain_outcome(policy, subject, 1)) {
            Some(Outcome::Admitted) => Self::known(Ok(Some(Permit::plain(DecidedBy::Backend)))),
            Some(denied) => Self::denied(policy, denied),
            None => Self::begin_plain(limiter, policy, subject),
        }
    }

    // A function of its own, so that most calls do not contain the code for a check.
    #[inline(never)]
    fn begin_plain(limiter: &Limiter, policy: &Policy, subject: &Subject) -> Self {
        if let Some(decided) = subject.whole().and_then(|subject| limiter.plain_permit(policy, subject)) {
            return decided.map_or_else(|denied| Self::denied(policy, denied), |permit| Self::known(Ok(Some(permit))));
        }
        Self::begin(limiter.check(policy, subject))
    }

    fn denied(policy: &Policy, denied: Outcome) -> Self {
        let call = Call::new(policy, &[], CallOptions::PLAIN);
        Self::known(denied.decision(call, DecidedBy::Backend).into_result().map(Some).map_err(Rejection::from))
    }

    /// Decides the call, or begins to if this process cannot decide it alone.
    #[inline]
    pub(super) fn begin(mut check: Check<'_>) -> Self {
        match check.decide_at_once() {
            ControlFlow::Break(decided) => Self::known(check.admitted(decided).map(Some)),
            ControlFlow::Continue(observation) => Self::waiting(check, observation),
        }
    }

    #[cold]
    fn waiting(check: Check<'_>, observation: Observation) -> Self {
        let check = check.into_owned();
        Self::Waiting(WaitingCall(Box::pin(async move {
            let decided = check.decide_later(observation).await;
            check.admitted(decided).map(Some)
        })))
    }
}

/// Runs the body of a function that is not async, if an epilogue follows it.
pub fn run_body<T>(body: impl FnOnce() -> T) -> T {
    body()
}

impl Future for WaitingCall {
    type Output = Admitted;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Admitted> {
        self.0.as_mut().poll(context)
    }
}

opaque_debug!(Admission);
opaque_debug!(WaitingCall);
