//! Who sends a request.

use axum::extract::{FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;

/// Who pays for more.
const PAYING: [&str; 2] = ["carol", "dave"];

/// A user who is signed in.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) plan: &'static str,
}

/// Notes the user of a request. A real service takes the name from a session that it has verified, and the plan from its database.
pub(crate) async fn sign_in(mut request: Request, next: Next) -> Response {
    let name = request.headers().get("x-user").and_then(|name| name.to_str().ok()).map(str::to_owned);
    if let Some(name) = name {
        let plan = if PAYING.contains(&&*name) { "paid" } else { "free" };
        request.extensions_mut().insert(User { name, plan });
    }
    next.run(request).await
}

/// Handlers that take a user are for users who are signed in.
impl<S: Sync> FromRequestParts<S> for User {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, StatusCode> {
        parts.extensions.get::<Self>().cloned().ok_or(StatusCode::UNAUTHORIZED)
    }
}
