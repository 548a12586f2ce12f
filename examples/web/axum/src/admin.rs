//! What support can do: see where the limits of a mail address stand, reset them, and raise them for a while.

use axum::extract::{Path, Request};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tallygate::{Decision, Limiter};

use crate::handlers::code_limit;

/// Returns the routes, which are open to who knows the token.
pub(crate) fn router(token: &str) -> Router {
    let expected = format!("Bearer {token}");
    let check = move |request: Request, next: Next| {
        let is_known = request.headers().get(header::AUTHORIZATION).is_some_and(|given| *given == *expected);
        async move { if is_known { Ok(next.run(request).await) } else { Err(StatusCode::UNAUTHORIZED) } }
    };
    Router::new()
        .route("/codes/{email}", get(peek).delete(reset).put(raise))
        .layer(middleware::from_fn::<_, (Request,)>(check))
}

type Result<T> = std::result::Result<T, Error>;

#[derive(Serialize)]
struct Limit {
    rule: String,
    remaining: u64,
    resets_in_s: u64,
}

/// Shows where the limits stand, and counts nothing. The rule on the network shows that of support.
async fn peek(Path(email): Path<String>) -> Result<Json<Vec<Limit>>> {
    let decision: Decision = code_limit(&email).peek().report().await?;
    let limits = decision.report().iter().map(|limit| Limit {
        rule: limit.rule().to_string(),
        remaining: limit.remaining(),
        resets_in_s: limit.reset().as_secs(),
    });
    Ok(Json(limits.collect()))
}

/// Forgets the calls of the mail address, and none of the network.
async fn reset(Path(email): Path<String>) -> Result<StatusCode> {
    code_limit(&email).reset().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Changes the rules of the mail address by a text, like `address = 50 per 1h for 2h`.
async fn raise(Path(email): Path<String>, rules: String) -> Result<StatusCode> {
    let limiter = Limiter::installed();
    let subject = limiter.subject().value(email).trim().lower().hash().build();
    limiter.override_policy("mail.code").subject(&subject).text(&rules).allow_unknown().set().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What support may read, as users may not.
struct Error(String);

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl axum::response::IntoResponse for Error {
    fn into_response(self) -> Response {
        (StatusCode::BAD_REQUEST, self.0 + "\n").into_response()
    }
}
