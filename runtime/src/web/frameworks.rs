//! The frameworks whose requests are of the crate `http`: the values that they keep in requests, and their responses.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Extensions, HeaderMap, Response};
use http_body_util::Full;

use crate::decision::Rejection;

/// The functions of one framework. Each returns `None` for requests of another framework.
pub(super) struct Framework {
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
