//! The body of a response, which ends its call, and whose trailers may speak of limits, too.

use std::pin::Pin;
use std::task::{self, Poll};

use http::Version;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::settings::AdmittedCall;
use crate::observe::opaque_debug;

pin_project! {
    /// The body of a response to a paced call. Where concurrent calls are counted, the call is running until the body ends or
    /// fails, or is dropped.
    #[must_use = "the call ends when its body is dropped"]
    pub struct PacedBody<B> {
        #[pin]
        body: B,
        call: Option<AdmittedCall>,
    }
}

impl<B: Body> PacedBody<B> {
    /// The call has ended if the body has: nobody may ever poll an empty one.
    pub(super) fn new(body: B, call: AdmittedCall, version: Version) -> Self {
        let lasts = !body.is_end_stream() && call.lasts(version, body.size_hint().exact());
        Self { body, call: lasts.then_some(call) }
    }
}

impl<B: Body> Body for PacedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let polled = this.body.as_mut().poll_frame(cx);
        let trailers = match &polled {
            Poll::Ready(Some(Ok(frame))) => frame.trailers_ref(),
            _ => None,
        };
        if let Some((call, trailers)) = this.call.as_ref().zip(trailers) {
            call.hear_trailers(trailers);
        }
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) || this.body.is_end_stream() {
            *this.call = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

opaque_debug!([B] PacedBody<B>);
