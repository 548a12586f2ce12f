//! A request without its body, of any framework.

use std::net::{IpAddr, SocketAddr};

use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Uri};

use super::client_ip::{ClientIp, ClientIpSource};
use super::field_text::{field_text, host_text};
use crate::observe::opaque_debug;
#[cfg(feature = "actix")]
use crate::request_pattern::PathReading;
use crate::request_pattern::{RequestMethod, RequestPath};

/// The fields of requests that came through a proxy.
const PROXY_FIELDS: [&str; 14] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "x-client-ip",
    "cf-connecting-ip",
    "true-client-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "x-azure-clientip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
];

/// A request without its body. The functions that find [values](super::Layer::value) for a context read it.
pub struct Parts<'a> {
    head: Head<'a>,
    path: RequestPath<'a>,
    client_ip: Option<ClientIp>,
}

enum Head<'a> {
    Http {
        method: &'a Method,
        uri: &'a Uri,
        headers: &'a HeaderMap,
        extensions: &'a Extensions,
    },
    #[cfg(feature = "actix")]
    Actix(&'a actix_web::dev::ServiceRequest),
}

impl<'a> Parts<'a> {
    pub(super) fn of_http<B>(request: &'a Request<B>) -> Self {
        let (method, uri) = (request.method(), request.uri());
        let (headers, extensions) = (request.headers(), request.extensions());
        let path = RequestPath::read(uri.path(), uri.path());
        Self { head: Head::Http { method, uri, headers, extensions }, path, client_ip: None }
    }

    #[cfg(feature = "actix")]
    pub(super) fn of_actix(request: &'a actix_web::dev::ServiceRequest) -> Self {
        let path = RequestPath::read(request.uri().path(), request.match_info().as_str());
        Self { head: Head::Actix(request), path, client_ip: None }
    }

    /// Takes the client that a layer has already found, or else the one of the context.
    pub(super) fn with_known_client(self) -> Self {
        let client_ip = self.found_client();
        Self { client_ip, ..self }.or_client(ClientIp::current)
    }

    /// Takes that client if none was found.
    pub(super) fn or_client(self, other: impl FnOnce() -> Option<ClientIp>) -> Self {
        Self { client_ip: self.client_ip.or_else(other), ..self }
    }

    /// Returns the client that a layer has already found.
    pub(super) fn found_client(&self) -> Option<ClientIp> {
        self.extension(|client: &ClientIp| *client)
    }

    /// Finds the client.
    pub(super) fn with_client(self, source: &ClientIpSource) -> Self {
        let lines = source.field().map(|name| self.lines(name)).unwrap_or_default();
        let client_ip = source.resolve(self.peer(), lines);
        // A proxy that nobody was told of is no client.
        let is_proxied = source.field().is_none() && PROXY_FIELDS.iter().any(|name| !self.lines(name).is_empty());
        let client_ip = if is_proxied { client_ip.map(ClientIp::as_fallback) } else { client_ip };
        Self { client_ip, ..self }
    }

    /// Returns the client that the layer found, or else the one whose `ip` the [context](crate::context) has.
    #[must_use]
    pub fn client_ip(&self) -> Option<ClientIp> {
        self.client_ip
    }

    /// Returns the method as it was sent, like `GET`.
    #[must_use]
    pub fn method(&self) -> &str {
        match &self.head {
            Head::Http { method, .. } => method.as_str(),
            #[cfg(feature = "actix")]
            Head::Actix(request) => request.method().as_str(),
        }
    }

    /// Returns the path, like `/users/7`, as keys show it: percent-decoded once, with its dots resolved, and without slashes
    /// that are repeated or at its end. So `//%75sers/./7/` is `/users/7`, too. A percent sign and what is not UTF-8 stay
    /// encoded. Inside axum's `nest`, the path has no prefix.
    #[must_use]
    pub fn path(&self) -> &str {
        self.path.key()
    }

    /// Returns the path in all its readings.
    pub(super) fn request_path(&self) -> &RequestPath<'a> {
        &self.path
    }

    /// Returns the method. A CORS preflight is left out of limits, unless they take it in or list its method.
    pub(super) fn request_method(&self, takes_preflight: bool) -> RequestMethod<'_> {
        let name = self.method();
        let is_preflight = || {
            name == "OPTIONS" && ["origin", "access-control-request-method"].iter().all(|field| self.has_field(field))
        };
        RequestMethod { name, is_left_out: !takes_preflight && is_preflight() }
    }

    fn has_field(&self, name: &str) -> bool {
        match &self.head {
            Head::Http { headers, .. } => headers.contains_key(name),
            #[cfg(feature = "actix")]
            Head::Actix(request) => request.headers().contains_key(name),
        }
    }

    /// Returns the query, without the `?`.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        match &self.head {
            Head::Http { uri, .. } => uri.query(),
            #[cfg(feature = "actix")]
            Head::Actix(request) => request.uri().query(),
        }
    }

    /// Returns the route that matches the request, like `/users/{id}`; `None` if the server has no routes, or has not chosen
    /// one yet.
    #[must_use]
    pub fn route(&self) -> Option<String> {
        match &self.head {
            #[cfg(feature = "axum")]
            Head::Http { extensions, .. } => {
                extensions.get().map(|path: &axum::extract::MatchedPath| path.as_str().to_owned())
            }
            #[cfg(not(feature = "axum"))]
            Head::Http { .. } => None,
            #[cfg(feature = "actix")]
            Head::Actix(request) => {
                let seen = request.match_info().as_str();
                // `match_pattern` may look up the path as it was sent, and the router looks up the decoded one.
                let found = if request.path() == seen { request.match_pattern() } else { pattern_of(request, seen) };
                // `NormalizePath` may still change the path.
                found.or_else(|| self.path.readings().find_map(|reading| pattern_read(request, reading)))
            }
        }
    }

    /// Returns the first line of a field, if it is visible ASCII. For the field `Host`, it is the host as the client wrote it, in
    /// HTTP/2, too, where the URL of the request has it.
    ///
    /// A client can send any field. Identify it only by a field that a trusted proxy sets, or by a value that is verified. To tell
    /// clients apart by the whole of a field, use [`header_text`](Self::header_text).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        if let Some(authority) = self.authority().filter(|_| name.eq_ignore_ascii_case("host")) {
            return Some(authority);
        }
        match &self.head {
            Head::Http { headers, .. } => headers.get(name)?.to_str().ok(),
            #[cfg(feature = "actix")]
            Head::Actix(request) => request.headers().get(name)?.to_str().ok(),
        }
    }

    /// Returns the whole of a field, whatever its bytes are, as `{@header_…}` shows it. Different values have different texts.
    ///
    /// Several lines are one text, with `, ` between them, or `; ` between those of `Cookie`, as HTTP/2 may split fields. Bytes that
    /// are not UTF-8 are written as a NUL and two hexadecimal digits. For the field `Host`, it is the [host](Self::host).
    #[must_use]
    pub fn header_text(&self, name: &str) -> Option<String> {
        if name.eq_ignore_ascii_case("host") { self.host() } else { field_text(name, &self.lines(name)) }
    }

    /// Returns the host that the client asks for, like `shop.example`, in any version of HTTP: in lower case, without the port and
    /// a dot at the end.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        // The host of the URL goes before the field `Host` (RFC 9112, section 3.2.2; RFC 9113, section 8.3.1).
        let written = self.authority().map(str::to_owned);
        written.or_else(|| field_text("host", &self.lines("host"))).map(|written| host_text(&written))
    }

    /// The host in the URL of the request.
    fn authority(&self) -> Option<&str> {
        match &self.head {
            Head::Http { uri, .. } => uri.authority().map(http::uri::Authority::as_str),
            #[cfg(feature = "actix")]
            Head::Actix(request) => request.uri().authority().map(actix_web::http::uri::Authority::as_str),
        }
    }

    /// Reads a value that a layer around this one stored in the extensions of the request, such as a verified user. `None` if
    /// there is no value of that type.
    #[must_use]
    pub fn extension<T: Send + Sync + 'static, V>(&self, read: impl FnOnce(&T) -> V) -> Option<V> {
        match &self.head {
            Head::Http { extensions, .. } => extensions.get().map(read),
            #[cfg(feature = "actix")]
            Head::Actix(request) => actix_web::HttpMessage::extensions(*request).get().map(read),
        }
    }

    fn lines(&self, name: &str) -> Vec<&[u8]> {
        match &self.head {
            Head::Http { headers, .. } => headers.get_all(name).iter().map(HeaderValue::as_bytes).collect(),
            #[cfg(feature = "actix")]
            Head::Actix(request) => {
                request.headers().get_all(name).map(actix_web::http::header::HeaderValue::as_bytes).collect()
            }
        }
    }

    /// The address of the socket, where the server knows it.
    fn peer(&self) -> Option<IpAddr> {
        let peer = match &self.head {
            Head::Http { extensions, .. } => peer_of(extensions),
            #[cfg(feature = "actix")]
            Head::Actix(request) => request.peer_addr(),
        };
        peer.map(|peer| peer.ip())
    }
}

/// Returns the pattern of the resource that has a path, if the slash at its end makes no difference.
#[cfg(feature = "actix")]
fn pattern_read(request: &actix_web::dev::ServiceRequest, reading: PathReading<'_>) -> Option<String> {
    let PathReading::Other(path) = reading else { return None };
    let file = path.trim_end_matches('/');
    pattern_of(request, file).or_else(|| pattern_of(request, &format!("{file}/")))
}

#[cfg(feature = "actix")]
fn pattern_of(request: &actix_web::dev::ServiceRequest, path: &str) -> Option<String> {
    request.resource_map().match_pattern(path)
}

/// Returns the address of the socket, which servers store in the extensions of a request.
fn peer_of(extensions: &Extensions) -> Option<SocketAddr> {
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

// Leaves out the client and the path, which may be personal.
opaque_debug!(Parts<'_>, parts => { method: parts.method() });
