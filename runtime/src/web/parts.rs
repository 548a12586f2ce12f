//! What a layer sees of a request: everything but its body, in any framework.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::client_ip::{ClientIp, ClientIpSource};

/// A request without its body, as the functions see it that give [values](super::Layer::value) to a context.
pub struct Parts<'a> {
    head: Head<'a>,
    client_ip: Option<ClientIp>,
}

enum Head<'a> {
    Http(&'a http::request::Parts),
    #[cfg(feature = "actix")]
    Actix(&'a actix_web::dev::ServiceRequest),
}

impl<'a> Parts<'a> {
    pub(super) fn of_http(parts: &'a http::request::Parts) -> Self {
        Self { head: Head::Http(parts), client_ip: None }
    }

    #[cfg(feature = "actix")]
    pub(super) fn of_actix(request: &'a actix_web::dev::ServiceRequest) -> Self {
        Self { head: Head::Actix(request), client_ip: None }
    }

    /// The same request, whose client a layer has found already.
    pub(super) fn with_known_client(self) -> Self {
        let client_ip = self.extension();
        Self { client_ip, ..self }
    }

    /// The same request, whose client is found.
    pub(super) fn with_client(self, source: &ClientIpSource) -> Self {
        let lines = source.field().map(|name| self.lines(name)).unwrap_or_default();
        let client_ip = source.resolve(self.peer(), lines);
        Self { client_ip, ..self }
    }

    /// Returns the client, as the layer has found it.
    #[must_use]
    pub fn client_ip(&self) -> Option<ClientIp> {
        self.client_ip
    }

    /// Returns the method, like `GET`.
    #[must_use]
    pub fn method(&self) -> &str {
        match &self.head {
            Head::Http(parts) => parts.method.as_str(),
            #[cfg(feature = "actix")]
            Head::Actix(request) => request.method().as_str(),
        }
    }

    /// Returns the path, like `/users/7`, as the router sees it in which the layer stands: in axum as the client has sent it,
    /// and inside of `nest` without the prefix; in actix-web with `/%75sers/7` decoded.
    #[must_use]
    pub fn path(&self) -> &str {
        match &self.head {
            Head::Http(parts) => parts.uri.path(),
            // `ServiceRequest::path` is not decoded: by another spelling, a client would go past a limit of the path.
            #[cfg(feature = "actix")]
            Head::Actix(request) => request.match_info().as_str(),
        }
    }

    /// Returns the query behind the path, without its `?`.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        match &self.head {
            Head::Http(parts) => parts.uri.query(),
            #[cfg(feature = "actix")]
            Head::Actix(request) => request.uri().query(),
        }
    }

    /// Returns the route that the request has matched, like `/users/{id}`; `None` in a server without routes, and before
    /// the route is known.
    #[must_use]
    pub fn route(&self) -> Option<String> {
        match &self.head {
            #[cfg(feature = "axum")]
            Head::Http(parts) => {
                parts.extensions.get().map(|path: &axum::extract::MatchedPath| path.as_str().to_owned())
            }
            #[cfg(not(feature = "axum"))]
            Head::Http(_) => None,
            #[cfg(feature = "actix")]
            Head::Actix(request) if request.path() == self.path() => request.match_pattern(),
            // `match_pattern` may look for the path as it was sent, which is not what the router looks for.
            #[cfg(feature = "actix")]
            Head::Actix(request) => request.resource_map().match_pattern(self.path()),
        }
    }

    /// Returns the first line of a field, if it is visible ASCII. A client can send any field: only what a trusted proxy
    /// sets, or what is verified, says who the client is.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        match &self.head {
            Head::Http(parts) => parts.headers.get(name)?.to_str().ok(),
            #[cfg(feature = "actix")]
            Head::Actix(request) => request.headers().get(name)?.to_str().ok(),
        }
    }

    /// Returns what a layer around this one has found out, such as a verified user, and stored in the extensions of the
    /// request.
    #[must_use]
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        match &self.head {
            Head::Http(parts) => parts.extensions.get().cloned(),
            #[cfg(feature = "actix")]
            Head::Actix(request) => actix_web::HttpMessage::extensions(*request).get().cloned(),
        }
    }

    fn lines(&self, name: &str) -> Vec<&[u8]> {
        match &self.head {
            Head::Http(parts) => parts.headers.get_all(name).iter().map(http::HeaderValue::as_bytes).collect(),
            #[cfg(feature = "actix")]
            Head::Actix(request) => {
                request.headers().get_all(name).map(actix_web::http::header::HeaderValue::as_bytes).collect()
            }
        }
    }

    /// The address of the socket, where the server knows it.
    fn peer(&self) -> Option<IpAddr> {
        let peer = match &self.head {
            Head::Http(parts) => peer_of(&parts.extensions),
            #[cfg(feature = "actix")]
            Head::Actix(request) => request.peer_addr(),
        };
        peer.map(|peer| peer.ip())
    }
}

/// Finds the address of the socket as servers store it in the extensions of a request.
fn peer_of(extensions: &http::Extensions) -> Option<SocketAddr> {
    #[cfg(feature = "axum")]
    {
        use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};
        let found = extensions.get().map(|ConnectInfo(peer)| *peer);
        if let Some(peer) = found.or_else(|| extensions.get().map(|MockConnectInfo(peer)| *peer)) {
            return Some(peer);
        }
    }
    #[cfg(feature = "tonic")]
    if let Some(connection) = extensions.get::<tonic::transport::server::TcpConnectInfo>() {
        return connection.remote_addr();
    }
    extensions.get().copied()
}

/// Leaves out who the client is.
impl fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("method", &self.method()).finish_non_exhaustive()
    }
}
