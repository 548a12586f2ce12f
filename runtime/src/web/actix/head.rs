//! The head of a request of actix-web, whose types are of an older version of the crate `http`.

use std::net::SocketAddr;

use actix_web::dev::ServiceRequest;
use actix_web::http::header::HeaderValue;
use actix_web::http::uri::Authority;

use crate::request_pattern::{PathReading, RequestPath};
use crate::web::parts::{Head, Parts, RequestHead};

pub(super) fn parts(request: &ServiceRequest) -> Parts<'_> {
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
