//! Rejections and clients in axum.

use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};
use axum::extract::{FromRequestParts, MatchedPath, OptionalFromRequestParts};
use axum::http::request::Parts;
use axum::http::{Extensions, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body::Body as _;

use super::client_ip::{ClientIp, MissingClientIp};
use super::problem::Problem;
use crate::decision::{Answered, FromRejection, HoldPermit, Holding, Permit, Rejection, hold};
use crate::error::BackendError;
use crate::held::Held;

pub(super) fn route(extensions: &Extensions) -> Option<String> {
    extensions.get().map(|path: &MatchedPath| path.as_str().to_owned())
}

pub(super) fn peer(extensions: &Extensions) -> Option<SocketAddr> {
    let found = extensions.get().map(|ConnectInfo(peer)| *peer);
    found.or_else(|| extensions.get().map(|MockConnectInfo(peer)| *peer))
}

/// The response of [`Layer::reject`](super::Layer::reject) within such a layer, or else the status, `Retry-After`, and a
/// [`Problem`] as the body.
impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        Response::<String>::from(&self).map(Body::from)
    }
}

/// The response to a rejected call that the backend did not decide.
impl IntoResponse for BackendError {
    fn into_response(self) -> Response {
        Rejection::from(self).into_response()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.response()
    }
}

/// For functions that return `Result<T, Response>`.
impl From<Rejection> for Response {
    fn from(rejection: Rejection) -> Self {
        rejection.into_response()
    }
}

impl FromRejection for Response<Body> {
    fn from_rejection(rejection: Rejection) -> Self {
        rejection.into_response()
    }
}

/// For functions that return `impl IntoResponse`.
impl<T: IntoResponse> IntoResponse for Answered<T> {
    fn into_response(self) -> Response {
        match self {
            Self::Result(result) => result.into_response(),
            Self::Rejected(rejection) => rejection.into_response(),
        }
    }
}

/// The body keeps its frames and its length.
impl HoldPermit for Response<Body> {
    fn hold_permit(self, permit: Permit) -> Self {
        self.map(|body| Body::new(Held::new(body, vec![permit], Body::is_end_stream)))
    }
}

/// For functions that return `impl IntoResponse`.
impl<T: IntoResponse> IntoResponse for Holding<T> {
    fn into_response(self) -> Response {
        hold(self.response.into_response(), self.permit)
    }
}

/// The client that [`Layer`](super::Layer) found, or else the one of the [context](crate::context). Without one, the response has
/// the status 500.
impl<S: Sync> FromRequestParts<S> for ClientIp {
    type Rejection = MissingClientIp;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingClientIp> {
        parts.extensions.get().copied().or_else(Self::current).ok_or(MissingClientIp)
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for ClientIp {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Self::Rejection> {
        Ok(parts.extensions.get().copied().or_else(Self::current))
    }
}

/// Only the status 500, so that clients learn nothing about the server. The log has the reason, once.
impl IntoResponse for MissingClientIp {
    fn into_response(self) -> Response {
        self.report();
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}
