//! The decision that an annotated function awaits.

use std::borrow::Cow;
use std::fmt;
use std::future::{Future, IntoFuture as _};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Call;
use crate::decision::{Decision, Permit, Rejection};
use crate::limiter::{Deciding, Limiter};
use crate::policy::Policy;
use crate::subject::Subject;

/// The permit to run, which a call in shadow may lack; or why the function must not run.
type Entered = Result<Option<Permit>, Rejection>;

/// Decides one call of an annotated function.
///
/// It is a type of its own, and of this crate: the state of an `async fn` would be worked out again by the compiler for
/// every annotated function.
#[must_use = "a call is decided when it is awaited"]
pub struct Enter {
    state: State,
    shadow: bool,
}

#[allow(clippy::large_enum_variant, reason = "it is decided where it lies; boxing it would cost every call more")]
enum State {
    Deciding {
        policy: Cow<'static, Policy>,
        deciding: Deciding<'static>,
    },
    /// There is no policy to decide by.
    Refused(Option<Rejection>),
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
    let shadow = call.is_shadow();
    let state = match policy {
        // Most policies are borrowed, so cloning is free.
        Ok(policy) => State::Deciding {
            policy: policy.clone(),
            deciding: call.into_check(limiter, policy, subject).into_future(),
        },
        Err(rejection) => State::Refused(Some(rejection)),
    };
    Enter { state, shadow }
}

impl Future for Enter {
    type Output = Entered;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Entered> {
        let Self { state, shadow } = &mut *self;
        let decided = match state {
            State::Deciding { policy, deciding } => match Pin::new(deciding).poll(context) {
                Poll::Ready(Ok(Decision::Allowed(permit))) => return Poll::Ready(Ok(Some(permit))),
                Poll::Ready(Ok(Decision::Denied(denial))) => Err(denial.into()),
                Poll::Ready(Err(error)) => Err(Rejection::unavailable(policy.name(), error)),
                Poll::Pending => return Poll::Pending,
            },
            // Polled again after it was ready, which is the caller's mistake: it never is again.
            State::Refused(rejection) => match rejection.take() {
                Some(rejection) => Err(rejection),
                None => return Poll::Pending,
            },
        };
        Poll::Ready(if *shadow { Ok(None) } else { decided })
    }
}

impl fmt::Debug for Enter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enter").finish_non_exhaustive()
    }
}
