//! The web frameworks: what those whose requests are of the crate `http` keep in them, and how they answer.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Extensions, HeaderMap, Response};
use http_body_util::Full;

use crate::decision::Rejection;

/// What only one framework knows of its requests. Each function returns `None` where another framework has to know.
pub(super) struct Framework {
    /// The route that matches the request.
    pub(super) route: fn(&Extensions) -> Option<String>,
    /// The address of the socket.
    pub(super) peer: fn(&Extensions) -> Option<SocketAddr>,
    /// The response to a rejected request with these fields, where it is not the usual one.
    pub(super) response: fn(&Rejection, &HeaderMap) -> Option<Response<Full<Bytes>>>,
}

impl Framework {
    const PLAIN: Self = Self { route: |_| None, peer: |_| None, response: |_, _| None };
}

pub(super) const FRAMEWORKS: &[Framework] = &[
    #[cfg(feature = "axum")]
    Framework { route: super::axum::route, peer: super::axum::peer, ..Framework::PLAIN },
    #[cfg(feature = "tonic")]
    Framework { peer: super::tonic::peer, response: super::tonic::response, ..Framework::PLAIN },
];
