//! The layer as a service of `tower`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};

use http::{HeaderName, HeaderValue, Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::Layer;
use super::settings::{LayerSettings, WebRequest, WebResponse, web_response};
use crate::context::{self, Context, Maker};
use crate::observe::opaque_debug;
use crate::web::decisions::Decisions;
use crate::web::parts::Parts;

/// The service of a [`Layer`].
#[derive(Clone)]
pub struct LayerService<S> {
    pub(in crate::web) inner: S,
    pub(in crate::web) settings: Arc<LayerSettings>,
}

impl<S> tower_layer::Layer<S> for Layer {
    type Service = LayerService<S>;

    fn layer(&self, inner: S) -> LayerService<S> {
        LayerService { inner, settings: Arc::clone(&self.settings) }
    }
}

impl<S, Q, B> Service<Request<Q>> for LayerService<S>
where
    S: Service<Request<Q>, Response = Response<B>>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Q>) -> Self::Future {
        let (mut context, decisions) = self.settings.enter(&mut request, Maker::Layer);
        let future = context::enter(&mut context, || self.inner.call(request));
        ResponseFuture { future, context, decisions, settings: Arc::clone(&self.settings) }
    }
}

opaque_debug!([S] LayerService<S>);

pin_project! {
    /// The future of a [`LayerService`].
    pub struct ResponseFuture<F> {
        #[pin]
        future: F,
        context: Context,
        decisions: Decisions,
        settings: Arc<LayerSettings>,
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<B>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(context::enter(this.context, || this.future.poll(cx)))?;
        this.settings.write_fields(&mut response, this.decisions);
        Poll::Ready(Ok(response))
    }
}

opaque_debug!([F] ResponseFuture<F>);

impl<B> WebRequest for Request<B> {
    fn parts(&self) -> Parts<'_> {
        Parts::of_http(self)
    }

    fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.extensions_mut().insert(value);
    }
}

web_response!(Response<B>, HeaderName, HeaderValue, extensions_mut());
