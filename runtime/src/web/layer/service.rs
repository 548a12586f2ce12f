//! The layer as a service of `tower`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};

use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::settings::{EnteredRequest, Settings, retry_after_s};
use crate::context::{self, Context, Decisions, Maker};
use crate::web::parts::Parts;

/// The service of a [`Layer`](super::Layer).
#[derive(Clone)]
pub struct LayerService<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S> LayerService<S> {
    pub(super) fn new(inner: S, settings: Arc<Settings>) -> Self {
        Self { inner, settings }
    }

    #[cfg(feature = "actix")]
    pub(in crate::web) fn inner(&self) -> &S {
        &self.inner
    }

    #[cfg(feature = "actix")]
    pub(in crate::web) fn settings(&self) -> &Arc<Settings> {
        &self.settings
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

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let (request, EnteredRequest { mut context, decisions, .. }) = enter(&self.settings, request, Maker::Layer);
        let future = context::enter(&mut context, || self.inner.call(request));
        ResponseFuture { future, context, decisions, settings: Arc::clone(&self.settings) }
    }
}

impl<S> fmt::Debug for LayerService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayerService").finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of a [`LayerService`].
    pub struct ResponseFuture<F> {
        #[pin]
        future: F,
        context: Context,
        decisions: Decisions,
        settings: Arc<Settings>,
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
        write_fields(&mut response, this.settings, this.decisions);
        Poll::Ready(Ok(response))
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

/// Answers a request as a layer with these settings does, for a limit that has none around it.
pub(in crate::web) async fn answer_within<Q, B, E, F>(
    settings: &Settings,
    request: Request<Q>,
    answer: impl FnOnce(Request<Q>) -> F,
) -> Result<Response<B>, E>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    let (request, EnteredRequest { context, decisions, .. }) = enter(settings, request, Maker::Limit);
    let mut response = context::scope(context, async { answer(request).await }).await?;
    write_fields(&mut response, settings, &decisions);
    Ok(response)
}

/// Makes the context of a request, and stores its client in it for handlers.
fn enter<Q>(settings: &Settings, request: Request<Q>, maker: Maker) -> (Request<Q>, EnteredRequest) {
    let (mut parts, body) = request.into_parts();
    let entered = settings.enter(Parts::of_http(&parts), maker);
    if let Some(client_ip) = entered.client_ip {
        parts.extensions.insert(client_ip);
    }
    (Request::from_parts(parts, body), entered)
}

fn write_fields<B>(response: &mut Response<B>, settings: &Settings, decisions: &Decisions) {
    let status = response.status().as_u16();
    let headers = response.headers_mut();
    for (name, value) in settings.fields(decisions) {
        // The values are ASCII.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    if let Some(seconds) = retry_after_s(status, decisions) {
        headers.entry(RETRY_AFTER).or_insert_with(|| HeaderValue::from(seconds));
    }
}
