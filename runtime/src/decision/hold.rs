//! A call that runs until the body of its response is over: the response holds its permit.
//!
//! Of `impl IntoResponse` of axum and `impl Responder` of actix-web, the type behind it may be any. So its body is only there
//! once a server asks for the response, and until then the permit is held beside it.

use super::permit::Permit;

/// A response whose body can hold a permit. Functions with `concurrency(…, until = "body")` return one.
///
/// With the feature `axum` or `actix`, the response of that framework is one, and so is `Result<T, E>` of it. A function may
/// also return `impl IntoResponse` or `impl Responder`, alone or in a `Result`, whatever the type behind it.
///
/// # Examples
///
/// By hand, it keeps a call running until a response of any origin was sent. A type of your own passes the permit on to the
/// response that it becomes.
///
/// ```
/// # #[cfg(feature = "axum")] {
/// use axum::response::{IntoResponse, Response};
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
///
/// impl IntoResponse for Page {
///     fn into_response(self) -> Response {
///         let response = self.html.into_response();
///         match self.permit {
///             Some(permit) => response.hold_permit(permit),
///             None => response,
///         }
///     }
/// }
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "the body of `{Self}` cannot hold the permit of a call",
    label = "`until = \"body\"` needs a type that is `HoldPermit`",
    note = "return `impl IntoResponse` in axum or `impl Responder` in actix-web, alone or in a `Result`",
    note = "or return the response of the framework: `axum::response::Response` or `actix_web::HttpResponse`",
    note = "or, if `{Self}` is a type of your own, `impl tallygate::HoldPermit` for it"
)]
#[cfg_attr(
    not(any(feature = "axum", feature = "actix")),
    diagnostic::on_unimplemented(
        note = "for a framework, tallygate needs its feature; add it in Cargo.toml, like `features = [\"axum\"]`"
    )
)]
pub trait HoldPermit {
    /// Returns the response with a body that holds the permit until it ends or fails, or is dropped.
    #[must_use]
    fn hold_permit(self, permit: Permit) -> Self;
}

/// An error has no body that goes on: its permit is dropped.
// Of a `Result` that is none, the notes above say more than that its value is none.
#[diagnostic::do_not_recommend]
impl<T: HoldPermit, E> HoldPermit for Result<T, E> {
    fn hold_permit(self, permit: Permit) -> Self {
        self.map(|response| response.hold_permit(permit))
    }
}

/// A response of any type, and the permit that its body will hold.
#[cfg(any(feature = "axum", feature = "actix"))]
#[derive(Debug)]
pub struct Holding<T> {
    pub(crate) response: T,
    pub(crate) permit: Option<Permit>,
}

/// Without a framework, the response has to be of a type that holds a permit.
#[cfg(not(any(feature = "axum", feature = "actix")))]
pub type Holding<T> = T;

/// Lets the body of a response hold the permit, if the call has one.
pub fn hold<T: HoldPermit>(response: T, permit: Option<Permit>) -> T {
    match permit {
        Some(permit) => response.hold_permit(permit),
        None => response,
    }
}

/// Lets the body of a response of any type hold the permit.
#[cfg(any(feature = "axum", feature = "actix"))]
pub fn hold_any<T>(response: T, permit: Option<Permit>) -> Holding<T> {
    Holding { response, permit }
}

/// Lets the body of a response of any type hold the permit.
#[cfg(not(any(feature = "axum", feature = "actix")))]
pub fn hold_any<T: HoldPermit>(response: T, permit: Option<Permit>) -> Holding<T> {
    hold(response, permit)
}
