//! What a limited function returns that says no more of its result than that it is a response: `impl IntoResponse` of axum,
//! `impl Responder` of actix-web.
//!
//! Such a function may return any type, which need not be one that a rejection becomes. It returns a type that is either.

use super::Rejection;

/// The response of a body, or of a rejection.
#[cfg(any(feature = "axum", feature = "actix"))]
#[derive(Debug)]
pub enum Answered<T> {
    /// The body has run.
    Result(T),
    /// The body has not run.
    Rejected(Rejection),
}

/// Without a framework, the result has to be a type that a rejection becomes.
#[cfg(not(any(feature = "axum", feature = "actix")))]
pub type Answered<T> = T;

/// Returns what the function returns for a result of its body.
#[cfg(any(feature = "axum", feature = "actix"))]
pub fn answered<T>(result: T) -> Answered<T> {
    Answered::Result(result)
}

/// Returns what the function returns for a rejection.
#[cfg(any(feature = "axum", feature = "actix"))]
#[must_use]
pub fn rejected<T>(rejection: Rejection) -> Answered<T> {
    Answered::Rejected(rejection)
}

/// Returns what the function returns for a result of its body.
#[cfg(not(any(feature = "axum", feature = "actix")))]
pub fn answered<T>(result: T) -> Answered<T> {
    result
}

/// Returns what the function returns for a rejection.
#[cfg(not(any(feature = "axum", feature = "actix")))]
#[must_use]
pub fn rejected<T: super::FromRejection>(rejection: Rejection) -> Answered<T> {
    T::from_rejection(rejection)
}
