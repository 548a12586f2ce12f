//! Errors, as OpenAI's clients read them.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::json;
use tallygate::Rejection;
use tallygate::context::Context;
use tallygate::web::Problem;

/// Returns the response to a request that is not served.
pub(crate) fn error(status: StatusCode, kind: &str, message: &str) -> Response<String> {
    let code = match status {
        StatusCode::UNAUTHORIZED => "invalid_api_key",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_exceeded",
        _ => "unavailable",
    };
    let body = json!({ "error": { "message": message, "type": kind, "param": null, "code": code } });
    let mut response = Response::new(body.to_string());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

// Glue begins.
/// The type of a denial is what its rule counts, like `tokens`.
pub(crate) fn rejected(rejection: &Rejection, _context: &Context) -> Response<String> {
    let kind = rejection.rule().map_or("server_error", |rule| rule.unit().unwrap_or("requests"));
    let problem = Problem::from(rejection);
    error(problem.status(), kind, problem.detail())
}
// Glue ends.
