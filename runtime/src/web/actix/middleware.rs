//! The layer as a middleware of actix-web.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use actix_web::{Error, HttpMessage as _};

use crate::context::{self, Decisions, Maker};
use crate::web::layer::{EnteredRequest, Layer, LayerService, Settings, retry_after_s};
use crate::web::parts::Parts;

/// The middleware is the [`LayerService`], too.
impl<S, B> Transform<S, ServiceRequest> for Layer
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    S::Future: 'static,
    B: 'static,
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
    B: 'static,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<ServiceResponse<B>, Error>>>>;

    fn poll_ready(&self, cx: &mut task::Context<'_>) -> Poll<Result<(), Error>> {
        self.inner().poll_ready(cx)
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let settings = Arc::clone(self.settings());
        let EnteredRequest { mut context, decisions, .. } = enter(&settings, &request, Maker::Layer);
        let future = context::enter(&mut context, || self.inner().call(request));
        Box::pin(async move {
            let mut response = context::scope(context, future).await?;
            write_fields(&mut response, &settings, &decisions);
            Ok(response)
        })
    }
}

/// Answers a request as a layer with these settings does, for a limit that has none around it.
pub(super) async fn answer_within<B, F>(
    settings: &Settings,
    request: ServiceRequest,
    answer: impl FnOnce(ServiceRequest) -> F,
) -> Result<ServiceResponse<B>, Error>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
{
    let EnteredRequest { context, decisions, .. } = enter(settings, &request, Maker::Limit);
    let mut response = context::scope(context, async { answer(request).await }).await?;
    write_fields(&mut response, settings, &decisions);
    Ok(response)
}

/// Makes the context of a request, and stores its client in it for handlers.
fn enter(settings: &Settings, request: &ServiceRequest, maker: Maker) -> EnteredRequest {
    let entered = settings.enter(Parts::of_actix(request), maker);
    if let Some(client_ip) = entered.client_ip {
        request.extensions_mut().insert(client_ip);
    }
    entered
}

fn write_fields<B>(response: &mut ServiceResponse<B>, settings: &Settings, decisions: &Decisions) {
    let status = response.status().as_u16();
    let headers = response.headers_mut();
    for (name, value) in settings.fields(decisions) {
        // The values are ASCII.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    if let Some(seconds) = retry_after_s(status, decisions).filter(|_| !headers.contains_key(RETRY_AFTER)) {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
}
