//! The pace as a layer of `tower`, and why a call of it has no response.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::Pace;
use super::paced_call::{PacedBody, PacedCall};
use super::settings::{PaceSettings, PacedRequest};
use crate::decision::Rejection;
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

/// An error of any client. It is boxed, as clients that are put together have errors of this type.
type BoxError = Box<dyn Error + Send + Sync>;

/// Why a call of a [`PaceService`] has no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum PaceError {
    /// The call was not sent, as the policy rejects it. Nothing of its body was read.
    Rejected(Rejection),
    /// The client failed, with this error.
    Client(BoxError),
}

impl PaceError {
    /// Returns the rejection, if the call was not sent.
    #[must_use]
    pub fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::Client(_) => None,
        }
    }
}

impl fmt::Display for PaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => write!(f, "the call was not sent: {rejection}"),
            Self::Client(error) => error.fmt(f),
        }
    }
}

impl Error for PaceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::Client(error) => error.source(),
        }
    }
}

/// The status of the rejection, which is also its source, or that of the client's error.
#[cfg(feature = "tonic")]
impl From<PaceError> for tonic::Status {
    fn from(error: PaceError) -> Self {
        match error {
            PaceError::Rejected(rejection) => {
                let mut status = Self::from(rejection.clone());
                status.set_source(Arc::new(rejection));
                status
            }
            PaceError::Client(error) => Self::from_error(error),
        }
    }
}
