//! The attribute on functions of all shapes: they run if they are admitted, and only then.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod arguments;
mod blocking;
mod bodies;
mod companions;
mod concurrency;
mod contexts;
mod futures;
mod grammar;
mod handles;
mod hygiene;
mod keys;
mod limiters;
mod methods;
mod names;
mod pauses;
mod policies;
mod released;
mod sendable;
mod shapes;
mod sizes;
mod units;

use tallygate::{Rejection, RejectionKind};

/// A call was rejected by a limit, not by an outage.
#[track_caller]
fn assert_limited<T>(result: Result<T, impl Into<Failure>>) {
    let failure = result.err().map(Into::into);
    assert_eq!(failure.map(|Failure(rejection)| rejection.kind()), Some(RejectionKind::Limited));
}

/// An error of the user's own.
#[derive(Debug)]
struct Failure(Rejection);

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self(rejection)
    }
}
