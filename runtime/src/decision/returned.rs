//! The types that a limited function returns: they carry a rejection, or a body that can hold the permit of a call.
//!
//! A function may return `impl` of the response trait of a web framework. Its type is unknown, so a rejection cannot
//! become one, and it has no body yet. The attribute wraps it in a type of this module, for which the module `web`
//! implements the trait of each framework.

use super::permit::Permit;
use super::rejection::Rejection;

/// A type that can carry a [`Rejection`] back to the caller of a limited function.
///
/// Every `Result<T, E>` with `E: From<Rejection>` is one, `Rejection` itself included. With the feature of a web
/// framework, so is its response, and a function may return `impl` of its response trait: a rejected call is then
/// answered with problem details. The guide [lists the types](crate::guide::web).
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

// Otherwise, for a type that is no `Result`, the compiler reports a missing `From` instead of the notes above.
#[diagnostic::do_not_recommend]
impl<T, E: From<Rejection>> FromRejection for Result<T, E> {
    fn from_rejection(rejection: Rejection) -> Self {
        Err(E::from(rejection))
    }
}

/// A response whose body can hold a permit. Functions with `until = "body"` return one.
///
/// With the feature of a web framework, its response is one, and so is a `Result<T, E>` of it. A function may also
/// return `impl` of the response trait of the framework, alone or in a `Result`.
///
/// # Examples
///
/// Called by hand, it keeps the call running until a response of any origin was sent. A type of your own passes the
/// permit on to the response that it becomes.
///
/// ```
/// use tallygate::{HoldPermit, Permit};
///
/// struct Page {
///     html: String,
///     permit: Option<Permit>,
/// }
///
/// impl HoldPermit for Page {
///     fn hold_permit(self, permit: Permit) -> Self {
///         Self { permit: Some(permit), ..self }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "the body of `{Self}` cannot hold the permit of a call",
    label = "`until = \"body\"` needs a type that is `HoldPermit`",
    note = "return the response of your web framework, or `impl IntoResponse` or `impl Responder`, alone or in a `Result`",
    note = "for a framework, tallygate needs the feature of its name in Cargo.toml",
    note = "or, if `{Self}` is a type of your own, `impl tallygate::HoldPermit` for it"
)]
pub trait HoldPermit {
    /// Returns the response with a body that holds the permit until it ends or fails, or is dropped.
    #[must_use]
    fn hold_permit(self, permit: Permit) -> Self;
}

/// An error has no body that could hold the permit, so the permit is dropped.
// Otherwise, for a `Result` without this trait, the compiler reports only that its value lacks the trait.
#[diagnostic::do_not_recommend]
impl<T: HoldPermit, E> HoldPermit for Result<T, E> {
    fn hold_permit(self, permit: Permit) -> Self {
        self.map(|response| response.hold_permit(permit))
    }
}

/// The result of a body, or the rejection of a call whose body has not run.
#[derive(Debug)]
pub enum Answered<T> {
    /// The body has run.
    Result(T),
    /// The body has not run.
    Rejected(Rejection),
}

/// A response of any type, and the permit that its body will hold.
#[derive(Debug)]
pub struct Holding<T> {
    pub(crate) response: T,
    pub(crate) permit: Option<Permit>,
}

/// Lets the body of a response hold the permit, if the call has one.
pub fn hold<T: HoldPermit>(response: T, permit: Option<Permit>) -> T {
    match permit {
        Some(permit) => response.hold_permit(permit),
        None => response,
    }
}

/// Lets the body of a response of any type hold the permit.
pub fn hold_any<T>(response: T, permit: Option<Permit>) -> Holding<T> {
    Holding { response, permit }
}
