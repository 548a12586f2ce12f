//! A body that keeps a call running.

use std::pin::Pin;
use std::task::{self, Poll};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::decision::Permit;

pin_project! {
    /// The body of a response that holds the permits of its call. Where concurrent calls are counted, the call is running
    /// until the body ends or fails, or is dropped, as it is when its client has gone.
    #[derive(Debug)]
    pub struct Held<B> {
        #[pin]
        pub(crate) body: B,
        permits: Vec<Permit>,
    }
}

impl<B> Held<B> {
    /// The call has ended if its body has: nobody may ever poll an empty body.
    pub(crate) fn new(body: B, permits: Vec<Permit>, has_ended: impl FnOnce(&B) -> bool) -> Self {
        let permits = if has_ended(&body) { Vec::new() } else { permits };
        Self { body, permits }
    }

    /// Polls the body, and ends the call with it: a server may keep a body that has ended, and need not poll one again that says
    /// so.
    pub(crate) fn poll_body<T, E>(
        self: Pin<&mut Self>,
        poll: impl FnOnce(Pin<&mut B>) -> Poll<Option<Result<T, E>>>,
        has_ended: impl FnOnce(&B) -> bool,
    ) -> Poll<Option<Result<T, E>>> {
        let mut this = self.project();
        let polled = poll(this.body.as_mut());
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) || has_ended(&this.body) {
            this.permits.clear();
        }
        polled
    }
}

impl<B: Body> Body for Held<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.poll_body(|body| body.poll_frame(cx), Body::is_end_stream)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
