//! Rejections as the statuses of gRPC.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{self, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Extensions, HeaderMap, HeaderValue, Response};
use http_body_util::Full;
use tonic::metadata::{Binary, MetadataValue};
use tonic::transport::server::TcpConnectInfo;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use super::problem::Problem;
use crate::decision::{HoldPermit, Permit, Rejection, RejectionKind};
use crate::error::BackendError;
use crate::held::Held;
use crate::media_type::MediaType;

/// The status of a call that was rejected, whose message is the text of the rejection.
///
/// | kind | code | details |
/// | --- | --- | --- |
/// | `Limited`, `Concurrency`, `Banned` | `RESOURCE_EXHAUSTED` | `RetryInfo`, unless waiting does not help; `QuotaFailure`, whose subject is the limit |
/// | `Duplicate` | `ALREADY_EXISTS` | as for `Limited` |
/// | `Paused` | `UNAVAILABLE` | `RetryInfo` |
/// | `Unavailable` | `UNAVAILABLE`; by a [mistake in the program](crate::BackendErrorKind::Misuse) `INTERNAL` | none |
/// | `Unidentified` | `UNAUTHENTICATED` | none |
impl From<Rejection> for Status {
    fn from(rejection: Rejection) -> Self {
        let problem = Problem::from(&rejection);
        let mut details = ErrorDetails::new();
        if let Some(wait) = rejection.retry_after() {
            details.set_retry_info(Some(wait));
        }
        if let Some(limit) = &problem.violated_policy {
            details.add_quota_failure_violation(limit, problem.detail());
        }
        Self::with_error_details(code(&rejection), problem.detail(), details)
    }
}

/// The status of a rejected call that the backend did not decide.
impl From<BackendError> for Status {
    fn from(error: BackendError) -> Self {
        Rejection::from(error).into()
    }
}

/// For handlers that stream, whose stream is boxed as tonic's `BoxStream` is. The call is running until the stream ends or fails,
/// or is dropped, as it is when its client has gone.
impl<T: 'static> HoldPermit for tonic::Response<Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>> {
    fn hold_permit(self, permit: Permit) -> Self {
        self.map(|messages| Box::pin(Held::new(messages, vec![permit], has_ended)) as Pin<Box<_>>)
    }
}

impl<S: Stream<Item = Result<T, E>>, T, E> Stream for Held<S> {
    type Item = Result<T, E>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Result<T, E>>> {
        self.poll_body(|messages| messages.poll_next(cx), has_ended)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.body.size_hint()
    }
}

fn has_ended(messages: &impl Stream) -> bool {
    messages.size_hint().1 == Some(0)
}

fn code(rejection: &Rejection) -> Code {
    match rejection.kind() {
        RejectionKind::Limited | RejectionKind::Concurrency | RejectionKind::Banned => Code::ResourceExhausted,
        RejectionKind::Duplicate => Code::AlreadyExists,
        RejectionKind::Unavailable if rejection.is_misuse() => Code::Internal,
        RejectionKind::Unavailable | RejectionKind::Paused => Code::Unavailable,
        RejectionKind::Unidentified => Code::Unauthenticated,
    }
}

pub(super) fn peer(extensions: &Extensions) -> Option<SocketAddr> {
    extensions.get::<TcpConnectInfo>()?.remote_addr()
}

/// Returns the response to a rejected request of gRPC or gRPC-Web, as its client reads it. `None` if the request is of neither.
pub(super) fn response(rejection: &Rejection, fields: &HeaderMap) -> Option<Response<Full<Bytes>>> {
    let field = |name| fields.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let sent = field(CONTENT_TYPE).and_then(MediaType::parse)?;
    let status = || Status::from(rejection.clone());
    if sent.is_application("grpc") {
        return Some(status().into_http());
    }
    let is_web = |own: &MediaType| own.is_application("grpc-web") || own.is_application("grpc-web-text");
    let sent = Some(sent).filter(is_web)?;
    // A client may send bytes and want text.
    let listed = field(ACCEPT).into_iter().flat_map(|list| list.split(','));
    let accepted = listed.filter_map(MediaType::parse).find(is_web);
    Some(web_response(status(), &accepted.unwrap_or(sent)))
}

/// Returns a response of gRPC-Web. Its trailers are in the body, as scripts of other origins cannot read fields.
fn web_response(status: Status, media_type: &MediaType) -> Response<Full<Bytes>> {
    let (mut head, ()) = status.into_http::<()>().into_parts();
    head.headers.remove(CONTENT_TYPE);
    let frame = trailers(&head.headers);
    let body = if media_type.is_application("grpc-web-text") { base64(&frame) } else { frame };
    let mut response = Response::new(Full::from(body));
    if let Ok(value) = HeaderValue::from_str(media_type.as_str()) {
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
    response
}

/// Returns a frame of trailers: a flag, the length, and lines as in HTTP/1.
fn trailers(fields: &HeaderMap) -> Vec<u8> {
    const TRAILERS: u8 = 0x80;
    let lines =
        fields.iter().flat_map(|(name, value)| [name.as_str().as_bytes(), b":", value.as_bytes(), b"\r\n"].concat());
    let lines: Vec<u8> = lines.collect();
    let length = u32::try_from(lines.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[TRAILERS], &length[..], &lines].concat()
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    let mut text = MetadataValue::<Binary>::from_bytes(bytes).as_encoded_bytes().to_vec();
    // Metadata has no padding.
    text.resize(text.len().next_multiple_of(4), b'=');
    text
}
