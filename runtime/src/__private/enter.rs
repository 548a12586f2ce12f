//! The decision that an annotated function awaits.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Call;
use crate::decision::{Decision, Permit, Rejection};
use crate::limiter::{Decided, Deciding, Limiter};
use crate::policy::Policy;
use crate::subject::Subject;

/// The permit to run, which a call in shadow may lack; or why the function must not run.
type Entered = Result<Option<Permit>, Rejection>;

/// Decides one call of an annotated function.
///
/// It is a type of its own, and of this crate: the state of an `async fn` would be worked out again by the compiler for
/// every annotated function.
#[must_use = "a call is decided when it is awaited"]
pub struct Enter(State);

#[allow(clippy::large_enum_variant, reason = "it is decided where it lies; boxing it would cost every call more")]
enum State {
    Start(Start),
    Deciding { policy: Cow<'static, Policy>, shadow: bool, deciding: Deciding<'static> },
    Done,
}

/// A call that is yet to be decided.
struct Start {
    policy: Result<Cow<'static, Policy>, Rejection>,
    limiter: Cow<'static, Limiter>,
    subject: Subject,
    call: Call,
}

/// Decides one call of an annotated function.
#[inline]
pub fn enter(policy: Result<Cow<'static, Policy>, Rejection>, subject: Subject) -> Enter {
    enter_with(policy, super::installed(), subject, Call::new())
}

/// Decides one call of an annotated function that has a limiter of its own, or options.
#[inline]
pub fn enter_with(
    policy: Result<Cow<'static, Policy>, Rejection>,
    limiter: Cow<'static, Limiter>,
    subject: Subject,
    call: Call,
) -> Enter {
    Enter(State::Start(Start { policy, limiter, subject, call }))
}

impl Start {
    /// Decides a call that this process can decide at once; any other is decided by the future that it returns.
    fn decide(&self) -> ControlFlow<Entered, State> {
        let policy = match &self.policy {
            Ok(policy) => policy,
            Err(rejection) => return ControlFlow::Break(entered(Err(rejection.clone()), self.call.is_shadow())),
        };
        // Borrowed, as most calls are decided here and now.
        let limiter = Cow::Borrowed(&*self.limiter);
        let check = self.call.check(limiter, Cow::Borrowed(&**policy), Cow::Borrowed(&self.subject));
        match check.decide_at_once() {
            ControlFlow::Break(decided) => ControlFlow::Break(entered(permit(policy, decided), self.call.is_shadow())),
            ControlFlow::Continue(observation) => {
                let subject = Cow::Owned(self.subject.clone());
                let check = self.call.check(self.limiter.clone(), policy.clone(), subject);
                ControlFlow::Continue(State::Deciding {
                    policy: policy.clone(),
                    shadow: self.call.is_shadow(),
                    deciding: Deciding::waiting(check, observation),
                })
            }
        }
    }
}

#[inline]
fn permit(policy: &Policy, decided: Decided) -> Result<Permit, Rejection> {
    match decided {
        Ok(Decision::Allowed(permit)) => Ok(permit),
        Ok(Decision::Denied(denial)) => Err(denial.into()),
        Err(error) => Err(Rejection::unavailable(policy.name(), error)),
    }
}

/// A call in shadow runs whatever was decided.
#[inline]
fn entered(permit: Result<Permit, Rejection>, shadow: bool) -> Entered {
    match permit {
        Err(_) if shadow => Ok(None),
        permit => permit.map(Some),
    }
}

impl Future for Enter {
    type Output = Entered;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Entered> {
        if let State::Start(start) = &self.0 {
            match start.decide() {
                ControlFlow::Break(entered) => {
                    self.0 = State::Done;
                    return Poll::Ready(entered);
                }
                ControlFlow::Continue(deciding) => self.0 = deciding,
            }
        }
        // Polled again after it was ready, which is the caller's mistake: it never is again.
        let State::Deciding { policy, shadow, deciding } = &mut self.0 else { return Poll::Pending };
        let Poll::Ready(decided) = Pin::new(deciding).poll(context) else { return Poll::Pending };
        let entered = entered(permit(policy, decided), *shadow);
        self.0 = State::Done;
        Poll::Ready(entered)
    }
}

impl fmt::Debug for Enter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enter").finish_non_exhaustive()
    }
}
