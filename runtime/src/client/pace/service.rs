//! The pace as a layer of `tower`.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::settings::PaceSettings;
use super::{Pace, PaceError};
use crate::held::Held;
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
    S::Error: Send,
    Q: Send + 'static,
    B: Send,
{
    type Response = Response<Held<B>>;
    type Error = PaceError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    /// Always ready: a call that waits for its turn keeps no place of the client.
    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let mut client = self.inner.clone();
        let settings = Arc::clone(&self.settings);
        let (parts, body) = request.into_parts();
        let check = settings.check(&parts);
        Box::pin(async move {
            let permit = check.admit().await.map_err(PaceError::Rejected)?;
            poll_fn(|cx| client.poll_ready(cx)).await.map_err(PaceError::Client)?;
            let response = client.call(Request::from_parts(parts, body)).await.map_err(PaceError::Client)?;
            let (mut parts, body) = response.into_parts();
            let heard = settings.hear(&parts, permit.as_ref()).await;
            parts.extensions.insert(heard);
            Ok(Response::from_parts(parts, Held::new(body, permit.into_iter().collect())))
        })
    }
}

opaque_debug!([S] PaceService<S>);
