//! The limit as a middleware of actix-web.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{self, Poll};

use actix_web::Error;
use actix_web::body::EitherBody;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};

use super::middleware::answer_within;
use super::response;
use crate::context;
use crate::web::limit::gate::{Gate, permit};
use crate::web::limit::{Held, Limit, LimitService};
#[cfg(feature = "config")]
use crate::web::limits::Limits;
use crate::web::parts::Parts;

macro_rules! middleware {
    ($limit:ty) => {
        /// The middleware is a [`LimitService`], too.
        impl<S, B> Transform<S, ServiceRequest> for $limit
        where
            S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
            B: 'static,
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
    B: 'static,
{
    type Response = ServiceResponse<EitherBody<Held<B>>>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>>>>;

    fn poll_ready(&self, cx: &mut task::Context<'_>) -> Poll<Result<(), Error>> {
        self.inner().poll_ready(cx)
    }

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let inner = Rc::clone(self.inner());
        let gate = Arc::clone(self.gate());
        Box::pin(async move {
            // Only now, as the future may be polled in another context than it is made in.
            if context::is_within_request() {
                return answer(&*inner, &*gate, request).await;
            }
            answer_within(gate.layer().settings(), request, |request| answer(&*inner, &*gate, request)).await
        })
    }
}

async fn answer<S, B>(
    inner: &S,
    gate: &dyn Gate,
    request: ServiceRequest,
) -> Result<ServiceResponse<EitherBody<Held<B>>>, Error>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    let check = gate.check(&Parts::of_actix(&request).with_known_client());
    let permit = match permit(check).await {
        Ok(permit) => permit,
        Err(rejection) => return Ok(request.into_response(response(&rejection)).map_into_right_body()),
    };
    let response = inner.call(request).await?;
    Ok(response.map_body(|_, body| EitherBody::left(Held::new(body, permit))))
}
