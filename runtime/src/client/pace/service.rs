//! The pace as a layer of `tower`.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::error::BoxError;
use super::paced_request::PacedRequest;
use super::settings::{PaceSettings, PacedCall};
use super::{Pace, PaceError, PacedBody};
use crate::observe::opaque_debug;

/// The client within a [`Pace`].
#[derive(Clone)]
pub struct PaceService<S> {
    inner: S,
    settings: Arc<PaceSettings>,
}

impl<S> Layer<S> for Pace {
    type Service = PaceService<S>;

    fn layer(&self, inner: S) -> PaceService<S> {
        PaceService { inner, settings: Arc::clone(&self.settings) }
    }
}

impl<S, Q, B> Service<Request<Q>> for PaceService<S>
where
    S: Service<Request<Q>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    Q: Send + 'static,
    B: Body + Send,
{
    type Response = Response<PacedBody<B>>;
    type Error = PaceError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    /// Ready when the client is, so that a call that was admitted is sent at once.
    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(failed)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let clone = self.inner.clone();
        // The clone may not be ready, so the one that is sends this request.
        let mut client = mem::replace(&mut self.inner, clone);
        let (parts, body) = request.into_parts();
        let call = PacedCall::new(&self.settings, &PacedRequest { parts: &parts, authority: None });
        Box::pin(async move {
            let mut call = call.admit().await.map_err(PaceError::Rejected)?;
            let response = client.call(Request::from_parts(parts, body)).await.map_err(failed)?;
            let (mut parts, body) = response.into_parts();
            parts.extensions.insert(call.hear(parts.status, &parts.headers).await);
            if let Some(meters) = call.meters() {
                parts.extensions.insert(meters);
            }
            let body = PacedBody::new(body, call, parts.version);
            Ok(Response::from_parts(parts, body))
        })
    }
}

fn failed(error: impl Into<BoxError>) -> PaceError {
    PaceError::Client(error.into())
}

opaque_debug!([S] PaceService<S>);
