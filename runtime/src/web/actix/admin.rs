//! The routes of operators as a service of actix-web.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{self, Poll};

use actix_web::body::{BodyStream, to_bytes_limited};
use actix_web::dev::{AppService, HttpServiceFactory, Payload, ResourceDef, Service, ServiceFactory};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::{Error, HttpMessage as _};
use bytes::Bytes;

use super::own_response;
use crate::web::admin::{AdminError, AdminRoutes, MOST_BYTES};

/// Mount it in a scope, which is the prefix: `web::scope("/admin/limits").service(AdminRoutes::new(&limiter))`.
impl HttpServiceFactory for AdminRoutes {
    fn register(self, config: &mut AppService) {
        let all = if config.is_root() { ResourceDef::root_prefix("") } else { ResourceDef::prefix("") };
        config.register_service(all, None, self, None);
    }
}

impl ServiceFactory<ServiceRequest> for AdminRoutes {
    type Response = ServiceResponse;
    type Error = Error;
    type Config = ();
    type Service = Self;
    type InitError = ();
    type Future = Ready<Result<Self, ()>>;

    fn new_service(&self, (): ()) -> Self::Future {
        ready(Ok(self.clone()))
    }
}

impl Service<ServiceRequest> for AdminRoutes {
    type Response = ServiceResponse;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<ServiceResponse, Error>>>>;

    fn poll_ready(&self, _: &mut task::Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&self, mut request: ServiceRequest) -> Self::Future {
        let routes = self.clone();
        Box::pin(async move {
            let body = read(request.take_payload());
            // The router has decoded the path, except `%25`, `%2F` and `%2B`, which a name may have encoded twice.
            let path = request.match_info().unprocessed();
            let (method, query) = (request.method().as_str(), request.uri().query());
            let response = routes.answer(method, path, query, body).await;
            Ok(request.into_response(own_response(response)))
        })
    }
}

async fn read(payload: Payload) -> Result<Bytes, AdminError> {
    match to_bytes_limited(BodyStream::new(payload), MOST_BYTES).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(AdminError::unread(&error)),
        Err(_) => Err(AdminError::too_long()),
    }
}
