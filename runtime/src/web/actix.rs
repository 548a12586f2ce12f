//! Rejections, clients and middlewares in actix-web.

#[cfg(feature = "admin")]
mod admin;
mod middleware;

use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{self, Poll};

use actix_web::body::{BodySize, BoxBody, EitherBody, MessageBody};
use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::web::Bytes;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse, Responder, ResponseError};

use http::Response;

use super::client_ip::{ClientIp, MissingClientIp};
use crate::decision::{Answered, FromRejection, HoldPermit, Holding, Permit, Rejection};
use crate::error::BackendError;
use crate::held::Held;

/// The response of [`Layer::reject`](super::Layer::reject) within such a layer, or else the status, `Retry-After`, and a
/// [`Problem`](super::Problem) as the body.
impl ResponseError for Rejection {
    fn status_code(&self) -> StatusCode {
        response(self).status()
    }

    fn error_response(&self) -> HttpResponse {
        response(self)
    }
}

/// The response to a rejected call that the backend did not decide.
impl ResponseError for BackendError {
    fn status_code(&self) -> StatusCode {
        self.error_response().status()
    }

    fn error_response(&self) -> HttpResponse {
        response(&self.clone().into())
    }
}

/// The response of the rejection's `ResponseError`.
impl Responder for Rejection {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        response(&self)
    }
}

impl FromRejection for HttpResponse {
    fn from_rejection(rejection: Rejection) -> Self {
        response(&rejection)
    }
}

/// For functions that return `impl Responder`.
impl<T: Responder<Body: 'static>> Responder for Answered<T> {
    type Body = EitherBody<T::Body>;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse<Self::Body> {
        match self {
            Self::Result(result) => result.respond_to(request).map_into_left_body(),
            Self::Rejected(rejection) => response(&rejection).map_into_right_body(),
        }
    }
}

/// The body keeps its pieces and its size.
impl HoldPermit for HttpResponse {
    fn hold_permit(self, permit: Permit) -> Self {
        self.map_body(|_, body| BoxBody::new(Held::new(body, vec![permit], has_ended)))
    }
}

/// For functions that return `impl Responder`.
impl<T: Responder<Body: 'static>> Responder for Holding<T> {
    type Body = Held<T::Body>;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse<Self::Body> {
        self.response
            .respond_to(request)
            .map_body(|_, body| Held::new(body, self.permit.into_iter().collect(), has_ended))
    }
}

impl<B: MessageBody> MessageBody for Held<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Result<Bytes, B::Error>>> {
        // The size is that of the whole body, and does not show its end.
        self.poll_body(|body| body.poll_next(cx), |_| false)
    }
}

fn has_ended(body: &impl MessageBody) -> bool {
    body.size().is_eof()
}

fn response(rejection: &Rejection) -> HttpResponse {
    own_response(Response::<String>::from(rejection))
}

/// Converts a response of the later version of the crate `http` into one of actix-web.
fn own_response(own: Response<impl MessageBody + 'static>) -> HttpResponse {
    let (head, body) = own.into_parts();
    let status = StatusCode::from_u16(head.status.as_u16()).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    let mut builder = HttpResponse::build(status);
    for (name, value) in &head.headers {
        builder.append_header((name.as_str(), value.as_bytes()));
    }
    builder.body(body)
}

/// The client that [`Layer`](super::Layer) found, or else the one of the [context](crate::context). Without one, the response has
/// the status 500.
impl FromRequest for ClientIp {
    type Error = MissingClientIp;
    type Future = Ready<Result<Self, MissingClientIp>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(request.extensions().get().copied().or_else(Self::current).ok_or(MissingClientIp))
    }
}

/// Only the status 500, so that clients learn nothing about the server. The log has the reason, once.
impl ResponseError for MissingClientIp {
    fn error_response(&self) -> HttpResponse {
        self.report();
        HttpResponse::InternalServerError().finish()
    }
}
