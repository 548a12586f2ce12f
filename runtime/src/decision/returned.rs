//! What a limited function returns: a type that a rejection becomes.
//!
//! Of `impl IntoResponse` of axum and `impl Responder` of actix-web, the type behind it may be any. A function that returns
//! one of these returns a type that is either a response or a rejection.

use super::rejection::Rejection;

/// A type that can carry a [`Rejection`] back to the caller of a limited function.
///
/// Every `Result<T, E>` is one when `E: From<Rejection>`, `Rejection` itself included. With the feature `axum` or `actix`, so
/// is the response of that framework, and a function may return `impl IntoResponse` or `impl Responder` whatever the type
/// behind it: a rejected call is then answered with problem details.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot carry a rejection back to the caller",
    label = "a limited function returns a type that is `FromRejection`",
    note = "return `Result<T, E>` with `impl From<tallygate::Rejection> for E`",
    note = "or say in the attribute how it is made of a rejection: `reject = |rejection| …`",
    note = "or, if `{Self}` is a type of your own, `impl tallygate::FromRejection` for it"
)]
pub trait FromRejection {
    /// Turns a rejection into the value that the limited function returns.
    fn from_rejection(rejection: Rejection) -> Self;
}

// For a type that is no `Result`, the notes above say more than that an error lacks a `From`.
#[diagnostic::do_not_recommend]
impl<T, E: From<Rejection>> FromRejection for Result<T, E> {
    fn from_rejection(rejection: Rejection) -> Self {
        Err(E::from(rejection))
    }
}

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
pub fn rejected<T: FromRejection>(rejection: Rejection) -> Answered<T> {
    T::from_rejection(rejection)
}
