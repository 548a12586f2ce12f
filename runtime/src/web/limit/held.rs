//! The body of a response, which holds the permit of its request until it is sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::decision::Permit;

pin_project! {
    /// The body of a response to a request that was admitted. Where concurrent calls are counted, its request is running
    /// until the body was sent or is dropped.
    #[derive(Debug)]
    pub struct Held<B> {
        #[pin]
        body: B,
        permit: Option<Permit>,
    }
}

impl<B> Held<B> {
    pub(in crate::web) fn new(body: B, permit: Option<Permit>) -> Self {
        Self { body, permit }
    }
}

impl<B: Body> Body for Held<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(feature = "actix")]
impl<B: actix_web::body::MessageBody> actix_web::body::MessageBody for Held<B> {
    type Error = B::Error;

    fn size(&self) -> actix_web::body::BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<bytes::Bytes, B::Error>>> {
        self.project().body.poll_next(cx)
    }
}
