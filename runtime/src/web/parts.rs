//! A request without its body, of any framework.

use std::net::SocketAddr;

use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Uri};

use super::client_ip::{ClientIp, ClientIpSource};
use super::frameworks::FRAMEWORKS;
use crate::field_text::{field_text, host_text};
use crate::observe::opaque_debug;
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

/// A request of the crate `http`, or of a framework that has types of its own.
pub(super) enum Head<'a> {
    Http(HttpHead<'a>),
    #[cfg(feature = "actix")]
    Actix(&'a actix_web::dev::ServiceRequest),
}

/// The parts of a request besides its path and its extensions.
pub(super) trait RequestHead {
    fn method(&self) -> &str;
    fn query(&self) -> Option<&str>;
    /// The host in the URL of the request.
    fn authority(&self) -> Option<&str>;
    /// The first line of a field.
    fn line(&self, name: &str) -> Option<&[u8]>;
    fn lines(&self, name: &str) -> Vec<&[u8]>;
    /// The route that matches the request, whose path may be written in several ways.
    fn route(&self, path: &RequestPath<'_>) -> Option<String>;
    /// The address of the socket, where the server knows it.
    fn peer(&self) -> Option<SocketAddr>;
}

pub(super) struct HttpHead<'a> {
    method: &'a Method,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
}

impl RequestHead for HttpHead<'_> {
    fn method(&self) -> &str {
        self.method.as_str()
    }

    fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    fn authority(&self) -> Option<&str> {
        self.uri.authority().map(http::uri::Authority::as_str)
    }

    fn line(&self, name: &str) -> Option<&[u8]> {
        self.headers.get(name).map(HeaderValue::as_bytes)
    }

    fn lines(&self, name: &str) -> Vec<&[u8]> {
        self.headers.get_all(name).iter().map(HeaderValue::as_bytes).collect()
    }

    fn route(&self, _: &RequestPath<'_>) -> Option<String> {
        FRAMEWORKS.iter().find_map(|framework| (framework.route)(self.extensions))
    }

    fn peer(&self) -> Option<SocketAddr> {
        let known = FRAMEWORKS.iter().find_map(|framework| (framework.peer)(self.extensions));
        known.or_else(|| self.extensions.get().copied())
    }
}

impl<'a> Parts<'a> {
    pub(super) fn of_http<B>(request: &'a Request<B>) -> Self {
        let (method, uri) = (request.method(), request.uri());
        let (headers, extensions) = (request.headers(), request.extensions());
        let path = RequestPath::read(uri.path(), uri.path());
        Self::new(Head::Http(HttpHead { method, uri, headers, extensions }), path)
    }

    pub(super) fn new(head: Head<'a>, path: RequestPath<'a>) -> Self {
        Self { head, path, client_ip: None }
    }

    fn head(&self) -> &dyn RequestHead {
        match &self.head {
            Head::Http(head) => head,
            #[cfg(feature = "actix")]
            Head::Actix(request) => *request,
        }
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

    pub(super) fn found_client(&self) -> Option<ClientIp> {
        self.extension(|client: &ClientIp| *client)
    }

    pub(super) fn with_client(self, source: &ClientIpSource) -> Self {
        let lines = source.field().map(|name| self.head().lines(name)).unwrap_or_default();
        let client_ip = source.resolve(self.head().peer().map(|peer| peer.ip()), lines);
        // A proxy that the layer was not told of has sent the request: its address is only a fallback.
        let is_proxied = source.field().is_none() && PROXY_FIELDS.iter().any(|name| self.has_field(name));
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
        self.head().method()
    }

    /// Returns the path, like `/users/7`, as keys show it: percent-decoded once, with its dots resolved, and without slashes
    /// that are repeated or at its end. So `//%75sers/./7/` is `/users/7`, too. A percent sign and what is not UTF-8 stay
    /// encoded. Inside axum's `nest`, the path has no prefix.
    #[must_use]
    pub fn path(&self) -> &str {
        self.path.key()
    }

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
        self.head().line(name).is_some()
    }

    /// Returns the query, without the `?`.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.head().query()
    }

    /// Returns the route that matches the request, like `/users/{id}`; `None` if the server has no routes, or has not chosen
    /// one yet.
    #[must_use]
    pub fn route(&self) -> Option<String> {
        self.head().route(&self.path)
    }

    /// Returns the first line of a field, if it is visible ASCII. For the field `Host`, it is the host as the client wrote it, in
    /// HTTP/2, too, where the URL of the request has it.
    ///
    /// A client can send any field. Identify it only by a field that a trusted proxy sets, or by a value that is verified. To tell
    /// clients apart by the whole of a field, use [`header_text`](Self::header_text).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        if let Some(authority) = self.head().authority().filter(|_| name.eq_ignore_ascii_case("host")) {
            return Some(authority);
        }
        let is_shown = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
        str::from_utf8(self.head().line(name).filter(|line| line.iter().all(is_shown))?).ok()
    }

    /// Returns the whole of a field, whatever its bytes are, as `{@header_…}` shows it. Different values have different texts.
    ///
    /// Several lines are one text, with `, ` between them, or `; ` between those of `Cookie`, as HTTP/2 may split fields. Bytes that
    /// are not UTF-8 are written as a NUL and two hexadecimal digits. For the field `Host`, it is the [host](Self::host).
    #[must_use]
    pub fn header_text(&self, name: &str) -> Option<String> {
        if name.eq_ignore_ascii_case("host") { self.host() } else { field_text(name, &self.head().lines(name)) }
    }

    /// Returns the host that the client asks for, like `shop.example`, in any version of HTTP: in lower case, without the port and
    /// a dot at the end.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        // The host of the URL goes before the field `Host` (RFC 9112, section 3.2.2; RFC 9113, section 8.3.1).
        let written = self.head().authority().map(str::to_owned);
        written.or_else(|| field_text("host", &self.head().lines("host"))).map(|written| host_text(&written))
    }

    /// Reads a value that a layer around this one stored in the extensions of the request, such as a verified user. `None` if
    /// there is no value of that type.
    #[must_use]
    pub fn extension<T: Send + Sync + 'static, V>(&self, read: impl FnOnce(&T) -> V) -> Option<V> {
        match &self.head {
            Head::Http(head) => head.extensions.get().map(read),
            #[cfg(feature = "actix")]
            Head::Actix(request) => actix_web::HttpMessage::extensions(*request).get().map(read),
        }
    }
}

// Leaves out the client and the path, which may be personal.
opaque_debug!(Parts<'_>, parts => { method: parts.method() });
