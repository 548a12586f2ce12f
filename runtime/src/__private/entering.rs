//! The decision that an annotated function awaits.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::{fmt, mem};

use super::Call;
use crate::observe::Watch;
use crate::{Decision, Limiter, Outage, Permit, Policy, Rejection, Subject};

/// The permit to run, which a call that runs whatever was decided may lack; or why the function must not run.
type Entered = Result<Option<Permit>, Rejection>;

/// Decides one call of an annotated function.
///
/// It is a type of its own, and of this crate: the state of an `async fn` would be worked out again by the compiler for
/// every annotated function.
#[must_use = "a call is decided when it is awaited"]
pub struct Entering(State);

#[allow(clippy::large_enum_variant, reason = "it is decided where it lies; boxing it would cost every call more")]
enum State {
    Asked(Asked),
    // Boxed, so that the future of an annotated function does not carry the state of a network call.
    Waiting(Pin<Box<dyn Future<Output = Entered> + Send>>),
    Done,
}

/// What is asked.
struct Asked {
    policy: Result<Cow<'static, Policy>, Rejection>,
    limiter: Cow<'static, Limiter>,
    subject: Subject,
    call: Call,
}

/// Decides one call of an annotated function.
#[inline]
pub fn enter(policy: Result<Cow<'static, Policy>, Rejection>, subject: Subject) -> Entering {
    enter_with(policy, super::installed(), subject, Call::new())
}

/// Decides one call of an annotated function that says more than rules, or who decides.
#[inline]
pub fn enter_with(
    policy: Result<Cow<'static, Policy>, Rejection>,
    limiter: Cow<'static, Limiter>,
    subject: Subject,
    call: Call,
) -> Entering {
    Entering(State::Asked(Asked { policy, limiter, subject, call }))
}

impl Asked {
    /// Decides a call that this process can decide without waiting.
    ///
    /// # Errors
    ///
    /// Of another, returns who watches it.
    fn at_once(&self) -> Result<Entered, Watch> {
        let policy = match &self.policy {
            Ok(policy) => policy,
            Err(refused) => return Ok(self.entered(Err(refused.clone()))),
        };
        let check = self.call.check(&self.limiter, policy, &self.subject);
        let watch = check.watch();
        match check.decide_at_once(&watch) {
            Poll::Ready(decided) => Ok(self.entered(permit(policy, decided))),
            Poll::Pending => Err(watch),
        }
    }

    async fn at_length(self, watch: Watch) -> Entered {
        let permit = match &self.policy {
            Ok(policy) => {
                let check = self.call.check(&self.limiter, policy, &self.subject);
                permit(policy, check.decide_at_length(watch).await)
            }
            Err(refused) => Err(refused.clone()),
        };
        self.entered(permit)
    }

    #[inline]
    fn entered(&self, permit: Result<Permit, Rejection>) -> Entered {
        match permit {
            Err(_) if self.call.is_shadow() => Ok(None),
            permit => permit.map(Some),
        }
    }
}

#[inline]
fn permit(policy: &Policy, decided: Result<Decision, Outage>) -> Result<Permit, Rejection> {
    match decided {
        // Most calls are admitted, and looked at in place rather than passed on.
        Ok(Decision::Allowed(permit)) => Ok(permit),
        Ok(Decision::Denied(denial)) => Err(denial.into()),
        Err(outage) => Err(Rejection::unavailable(policy.name().to_owned(), outage)),
    }
}

impl Future for Entering {
    type Output = Entered;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Entered> {
        let entered = match &mut self.0 {
            State::Asked(asked) => match asked.at_once() {
                Ok(entered) => Poll::Ready(entered),
                Err(watch) => self.0.go_on(watch, context),
            },
            State::Waiting(answer) => answer.as_mut().poll(context),
            // Polled again after it was ready, which is the caller's mistake: it never is again.
            State::Done => Poll::Pending,
        };
        if entered.is_ready() {
            self.0 = State::Done;
        }
        entered
    }
}

impl State {
    /// Goes on from a call that cannot be decided at once.
    #[cold]
    fn go_on(&mut self, watch: Watch, context: &mut Context<'_>) -> Poll<Entered> {
        let Self::Asked(asked) = mem::replace(self, Self::Done) else { return Poll::Pending };
        let mut answer: Pin<Box<dyn Future<Output = Entered> + Send>> = Box::pin(asked.at_length(watch));
        let polled = answer.as_mut().poll(context);
        *self = Self::Waiting(answer);
        polled
    }
}

impl fmt::Debug for Entering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entering").finish_non_exhaustive()
    }
}
