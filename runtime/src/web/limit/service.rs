//! The limit as a service of `tower`.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{Either, Full};
use tower_service::Service;

use super::Limit;
use super::checks::{CountedChecks, Effects, Limited};
use super::gate::Gate;
use crate::decision::Rejection;
use crate::held::Held;
use crate::observe::opaque_debug;
use crate::web::frameworks::FRAMEWORKS;
use crate::web::layer::settings::{WebRequest as _, answer_limited};
use crate::web::parts::Parts;

/// The body of a response: the router's, or that of a rejection.
pub type LimitBody<B> = Either<Held<B>, Full<Bytes>>;

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
        Box::pin(async move { answer_limited(request, |request| limited.answer(request)).await })
    }
}

opaque_debug!([S] LimitService<S>);

impl<S> LimitService<S> {
    fn limited(&self, parts: &Parts<'_>) -> (Limited, CountedChecks) {
        CountedChecks::count(self.gate.limited(parts), parts)
    }

    async fn answer<Q, B>(mut self, mut request: Request<Q>) -> Result<Response<LimitBody<B>>, S::Error>
    where
        S: Service<Request<Q>, Response = Response<B>>,
        B: Body,
    {
        let (limited, counted) = self.limited(&Parts::of_http(&request).with_known_client());
        let (admitted, rejection) = limited.admit().await;
        if let Some((rejection, effects)) = rejection {
            let response = rejected(&rejection, &effects, &request);
            admitted.refunded(response.status().as_u16()).await;
            return Ok(response.map(Either::Right));
        }
        request.insert(counted);
        let answered = self.inner.call(request).await;
        // A server answers an error with 500, if with anything.
        let status = answered.as_ref().map_or(StatusCode::INTERNAL_SERVER_ERROR, Response::status);
        let permits = admitted.refunded(status.as_u16()).await;
        Ok(answered?.map(|body| Either::Left(Held::new(body, permits, Body::is_end_stream))))
    }
}

fn rejected<Q>(rejection: &Rejection, effects: &Effects, request: &Request<Q>) -> Response<Full<Bytes>> {
    let parts = Parts::of_http(request).with_known_client();
    if let Some(own) = effects.rejected(rejection, &parts) {
        return own.map(Full::from);
    }
    let special = FRAMEWORKS.iter().find_map(|framework| (framework.response)(rejection, request.headers()));
    special.unwrap_or_else(|| Response::<String>::from(rejection).map(Full::from))
}
