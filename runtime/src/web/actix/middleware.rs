//! The layer and the limits as middlewares of actix-web, and how they read its requests.

use std::future::{Future, Ready, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{self, Poll};

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::error::InternalError;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::http::uri::Authority;
use actix_web::{Error, HttpMessage as _, HttpResponse};

use super::{has_ended, own_response, response};
use crate::context::{self, Maker};
use crate::decision::Rejection;
use crate::error::BackendError;
use crate::held::Held;
use crate::request_pattern::{PathReading, RequestPath};
use crate::web::decisions::Decisions;
use crate::web::layer::settings::{LayerSettings, WebRequest, WebResponse, answer_limited, web_response};
use crate::web::layer::{Layer, LayerService};
use crate::web::limit::checks::CountedChecks;
use crate::web::limit::gate::Gate;
use crate::web::limit::{Limit, LimitService};
#[cfg(feature = "config")]
use crate::web::limits::Limits;
use crate::web::parts::{Head, Parts, RequestHead};

/// The middleware is a [`LayerService`], too.
impl<S, B> Transform<S, ServiceRequest> for Layer
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    S::Future: 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type Transform = LayerService<S>;
    type InitError = ();
    type Future = Ready<Result<LayerService<S>, ()>>;

    fn new_transform(&self, inner: S) -> Self::Future {
        ready(Ok(tower_layer::Layer::layer(self, inner)))
    }
}

impl<S, B> Service<ServiceRequest> for LayerService<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    S::Future: 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<ServiceResponse<B>, Error>>>>;

    fn poll_ready(&self, cx: &mut task::Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&self, mut request: ServiceRequest) -> Self::Future {
        let settings = Arc::clone(&self.settings);
        let (mut context, decisions) = settings.enter(&mut request, Maker::Layer);
        let future = context::enter(&mut context, || self.inner.call(request));
        Box::pin(async move {
            let within = async { future.await.map_err(|error| answered(error, &settings, &decisions)) };
            let mut response = context::scope(context, within).await?;
            settings.write_fields(&mut response, &decisions);
            Ok(response)
        })
    }
}

/// Makes the response of a rejection that a middleware returns as an error. The framework would make it outside of the
/// layer, which knows how rejections are answered. Other errors stay as they are.
fn answered(error: Error, settings: &LayerSettings, decisions: &Decisions) -> Error {
    let is_rejection =
        decisions.any_denied() || error.as_error::<Rejection>().is_some() || error.as_error::<BackendError>().is_some();
    if !is_rejection {
        return error;
    }
    let mut response = error.error_response();
    settings.write_fields(&mut response, decisions);
    InternalError::from_response(error, response).into()
}

impl WebRequest for ServiceRequest {
    fn parts(&self) -> Parts<'_> {
        parts(self)
    }

    fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        self.extensions_mut().insert(value);
    }
}

web_response!(ServiceResponse<B>, HeaderName, HeaderValue, response_mut().extensions_mut());
web_response!(HttpResponse<B>, HeaderName, HeaderValue, extensions_mut());

macro_rules! middleware {
    ($limit:ty) => {
        /// The middleware is a [`LimitService`], too.
        impl<S, B> Transform<S, ServiceRequest> for $limit
        where
            S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
            B: MessageBody + 'static,
        {
            type Response = ServiceResponse<EitherBody<Held<B>>>;
            type Error = Error;
            type Transform = LimitService<Rc<S>>;
            type InitError = ();
            type Future = Ready<Result<LimitService<Rc<S>>, ()>>;

            fn new_transform(&self, inner: S) -> Self::Future {
                ready(Ok(tower_layer::Layer::layer(self, Rc::new(inner))))
            }
        }
    };
}

middleware!(Limit);
#[cfg(feature = "config")]
middleware!(Limits);

impl<S, B> Service<ServiceRequest> for LimitService<Rc<S>>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<Held<B>>>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>>>>;

    fn poll_ready(&self, cx: &mut task::Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let inner = Rc::clone(&self.inner);
        let gate = Arc::clone(&self.gate);
        Box::pin(async move { answer_limited(request, |request| answer(&*inner, &gate, request)).await })
    }
}

async fn answer<S, B>(
    inner: &S,
    gate: &Arc<dyn Gate>,
    mut request: ServiceRequest,
) -> Result<ServiceResponse<EitherBody<Held<B>>>, Error>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    let parts = parts(&request).with_known_client();
    let (limited, counted) = CountedChecks::count(gate.limited(&parts), &parts);
    let (admitted, rejection) = limited.admit().await;
    if let Some((rejection, effects)) = rejection {
        let own = effects.rejected(&rejection, &parts);
        let response = own.map_or_else(|| response(&rejection), own_response);
        admitted.refunded(response.status().as_u16()).await;
        return Ok(request.into_response(response).map_into_right_body());
    }
    request.insert(counted);
    let answered = inner.call(request).await;
    let status = match &answered {
        Ok(response) => response.status(),
        Err(error) => error.as_response_error().status_code(),
    };
    let permits = admitted.refunded(status.as_u16()).await;
    Ok(answered?.map_body(|_, body| EitherBody::left(Held::new(body, permits, has_ended))))
}

/// Returns the parts of a request, whose types are of an older version of the crate `http`.
fn parts(request: &ServiceRequest) -> Parts<'_> {
    let path = RequestPath::read(request.uri().path(), request.match_info().as_str());
    Parts::new(Head::Actix(request), path)
}

impl RequestHead for ServiceRequest {
    fn method(&self) -> &str {
        self.method().as_str()
    }

    fn query(&self) -> Option<&str> {
        self.uri().query()
    }

    fn authority(&self) -> Option<&str> {
        self.uri().authority().map(Authority::as_str)
    }

    fn line(&self, name: &str) -> Option<&[u8]> {
        self.headers().get(name).map(HeaderValue::as_bytes)
    }

    fn lines(&self, name: &str) -> Vec<&[u8]> {
        self.headers().get_all(name).map(HeaderValue::as_bytes).collect()
    }

    fn route(&self, path: &RequestPath<'_>) -> Option<String> {
        let seen = self.match_info().as_str();
        // `match_pattern` may look up the path as it was sent, and the router looks up the decoded one.
        let found = if self.path() == seen { self.match_pattern() } else { pattern_of(self, seen) };
        // `NormalizePath` may change the path later, so all its readings are looked up.
        found.or_else(|| path.readings().find_map(|reading| pattern_read(self, reading)))
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.peer_addr()
    }
}

/// Returns the pattern of the resource that has a path, if the slash at its end makes no difference.
fn pattern_read(request: &ServiceRequest, reading: PathReading<'_>) -> Option<String> {
    let PathReading::Other(path) = reading else { return None };
    let file = path.trim_end_matches('/');
    pattern_of(request, file).or_else(|| pattern_of(request, &format!("{file}/")))
}

fn pattern_of(request: &ServiceRequest, path: &str) -> Option<String> {
    request.resource_map().match_pattern(path)
}
