//! The errors of the handlers as responses: a file to copy into your own service.

use std::error::Error as _;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tallygate::{Rejection, RejectionKind};

/// Every error of the handlers. A limited handler only needs `From<Rejection>`.
pub(crate) enum ApiError {
    Rejected(Rejection),
    NoPhone,
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            Self::Rejected(rejection) => rejected(&rejection),
            Self::NoPhone => (StatusCode::UNPROCESSABLE_ENTITY, "`phone` must be 5 to 15 digits").into_response(),
        }
    }
}

fn rejected(rejection: &Rejection) -> Response {
    // The client learns that it can come back later; the reason is for the log.
    if let Some(error) = rejection.source() {
        tracing::warn!(policy = rejection.policy(), %error, "cannot check the rate limit");
    }
    let mut response = (status(rejection.kind()), Json(Body::from(rejection))).into_response();
    if let Some(wait) = rejection.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
    }
    response
}

fn status(kind: RejectionKind) -> StatusCode {
    match kind {
        RejectionKind::Duplicate => StatusCode::CONFLICT,
        RejectionKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::TOO_MANY_REQUESTS,
    }
}

/// Rounded up: a client that comes back early is rejected again.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

fn millis(duration: Duration) -> u128 {
    duration.as_micros().div_ceil(1_000)
}

/// A rejection as JSON.
#[derive(Serialize)]
struct Body<'a> {
    kind: String,
    message: String,
    policy: &'a str,
    rule: Option<Rule>,
    retry_after_ms: Option<u128>,
}

#[derive(Serialize)]
struct Rule {
    index: usize,
    count: u64,
    per_ms: Option<u128>,
}

impl<'a> From<&'a Rejection> for Body<'a> {
    fn from(rejection: &'a Rejection) -> Self {
        Self {
            kind: rejection.kind().to_string(),
            message: rejection.to_string(),
            policy: rejection.policy(),
            rule: rejection.rule().map(|rule| Rule {
                index: rule.position(),
                count: rule.count(),
                per_ms: rule.per().map(millis),
            }),
            retry_after_ms: rejection.retry_after().map(millis),
        }
    }
}
