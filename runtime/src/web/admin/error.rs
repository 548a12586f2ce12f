//! The errors of the routes.

use std::error::Error as _;
use std::fmt::Display;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use serde_json::json;

use crate::decision::Rejection;
use crate::error::{BackendError, Error, Setting};
use crate::web::problem::{PROBLEM_JSON, Problem};

/// The longest body. The rules of an override take half of it at most.
pub(in crate::web) const MOST_BYTES: usize = 16 * 1_024;

/// Why the request of an operator fails.
pub(in crate::web) enum AdminError {
    /// The request is mistaken.
    Refused { status: StatusCode, detail: String },
    /// The path has only these methods.
    NotAllowed { methods: &'static str },
    /// Redis does not answer, or refuses.
    Backend { error: BackendError, detail: String },
}

impl AdminError {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::Refused { status, detail: detail.into() }
    }

    /// The request can be read, but not carried out.
    pub(super) fn refused(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(in crate::web) fn too_long() -> Self {
        let detail = format!("the body is longer than {} KiB; send less", MOST_BYTES / 1_024);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    pub(in crate::web) fn unread(error: &dyn Display) -> Self {
        Self::malformed(format!("the body cannot be read: {error}"))
    }

    /// Returns this error with the note that the change may have been made.
    pub(super) fn amid_changes(mut self) -> Self {
        if let Self::Backend { detail, .. } = &mut self {
            detail.push_str("; part of it may have been changed already, and the request can be repeated");
        }
        self
    }

    pub(super) fn into_response(self) -> Response<Bytes> {
        match self {
            Self::Refused { status, detail } => problem(status, &detail),
            Self::NotAllowed { methods } => {
                let detail = format!("this path has other methods; use one of {methods}");
                let mut response = problem(StatusCode::METHOD_NOT_ALLOWED, &detail);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
                response
            }
            Self::Backend { error, detail } => Problem::from(&Rejection::from(error)).with_detail(detail).response(),
        }
    }
}

fn problem(status: StatusCode, detail: &str) -> Response<Bytes> {
    let title = status.canonical_reason().unwrap_or_default();
    let body = json!({ "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail });
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    response
}

impl From<BackendError> for AdminError {
    fn from(error: BackendError) -> Self {
        Self::Backend { detail: error.to_string(), error }
    }
}

impl From<Error> for AdminError {
    fn from(error: Error) -> Self {
        if let Some(cause) = error.source().and_then(|source| source.downcast_ref::<BackendError>()) {
            return cause.clone().into();
        }
        Self::refused(match error.named_setting() {
            Some(named) if named.setting() == Setting::Subject => {
                let before = named.before();
                format!("{before}give the whole subject, like `?subject=…`, or `?subject:label=…` for one with a label")
            }
            _ => error.to_string(),
        })
    }
}

/// Returns the result of a change. If it failed, the error says that a part of it may have been made.
pub(super) fn made<T, E: Into<AdminError>>(change: Result<T, E>) -> Result<T, AdminError> {
    change.map_err(|error| error.into().amid_changes())
}
