//! The limit as a service of `tower`, and the body of its responses.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Full};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::Limit;
use super::effects::Effects;
use super::gate::Gate;
use crate::decision::{Permit, Rejection};
use crate::observe::opaque_debug;
use crate::web::parts::Parts;
use crate::web::problem::Problem;

/// The body of a response: the router's, or that of a rejection.
pub type LimitBody<B> = Either<Held<B>, Full<Bytes>>;

pin_project! {
    /// The body of a response to a request that was admitted. Where concurrent calls are counted, its request is running
    /// until the body was sent or is dropped.
    #[derive(Debug)]
    pub struct Held<B> {
        #[pin]
        pub(in crate::web) body: B,
        pub(in crate::web) permit: Option<Permit>,
    }
}

/// The service of a [`Limit`] or of `Limits`.
#[derive(Clone)]
pub struct LimitService<S> {
    pub(in crate::web) inner: S,
    pub(in crate::web) gate: Arc<dyn Gate>,
}

impl<S> tower_layer::Layer<S> for Limit {
    type Service = LimitService<S>;

    fn layer(&self, inner: S) -> LimitService<S> {
        LimitService { inner, gate: self.settings.clone() }
    }
}

impl<S, Q, B> Service<Request<Q>> for LimitService<S>
where
    S: Service<Request<Q>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    Q: Send + 'static,
    B: Body<Data = Bytes> + Send,
{
    type Response = Response<LimitBody<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let clone = self.clone();
        // The clone may not be ready, so the one that is answers this request.
        let limited = mem::replace(self, clone);
        Box::pin(async move {
            let layer = Arc::clone(&limited.gate.layer().settings);
            layer.answer_limited(request, |request| limited.answer(request)).await
        })
    }
}

opaque_debug!([S] LimitService<S>);

impl<S> LimitService<S> {
    async fn answer<Q, B>(mut self, request: Request<Q>) -> Result<Response<LimitBody<B>>, S::Error>
    where
        S: Service<Request<Q>, Response = Response<B>>,
    {
        let mut limited = self.gate.limited(&Parts::of_http(&request).with_known_client());
        let permit = match limited.admit().await {
            Ok(permit) => permit,
            Err(rejection) => return Ok(rejected(&rejection, &limited.effects, &request).map(Either::Right)),
        };
        let response = self.inner.call(request).await?;
        let permit = limited.effects.refunded(permit, response.status().as_u16()).await;
        Ok(response.map(|body| Either::Left(Held { body, permit })))
    }
}

/// Returns the response to a request that is rejected.
fn rejected<Q>(rejection: &Rejection, effects: &Effects, request: &Request<Q>) -> Response<Full<Bytes>> {
    let parts = Parts::of_http(request).with_known_client();
    if let Some(own) = effects.rejected(rejection, &parts) {
        return own.map(Full::from);
    }
    #[cfg(feature = "tonic")]
    if parts.header("content-type").is_some_and(|media_type| media_type.starts_with("application/grpc")) {
        return tonic::Status::from(rejection.clone()).into_http();
    }
    Problem::from(rejection).response()
}

impl<B: Body> Body for Held<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
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

    fn poll_next(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Result<bytes::Bytes, B::Error>>> {
        self.project().body.poll_next(cx)
    }
}
