//! A request that is to be paced, and the values that any request may have.

use http::HeaderValue;
use http::header::HOST;
use http::request::Parts;

use crate::field_text::{field_text, host_text};

/// A request, as a pace looks at it.
pub(super) struct PacedRequest<'a> {
    pub(super) parts: &'a Parts,
    /// Where it goes; `None` if the parts say so.
    pub(super) authority: Option<&'a str>,
}

impl PacedRequest<'_> {
    fn host(&self) -> Option<String> {
        let authority = self.authority.or_else(|| Some(self.parts.uri.authority()?.as_str()));
        match authority {
            Some(authority) => Some(host_text(authority)),
            None => self.header_text(HOST.as_str()).map(|written| host_text(&written)),
        }
    }

    fn header_text(&self, field: &str) -> Option<String> {
        let lines: Vec<&[u8]> = self.parts.headers.get_all(field).iter().map(HeaderValue::as_bytes).collect();
        field_text(field, &lines)
    }

    /// Returns the value of that name which any request has.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        match name {
            "host" => self.host(),
            "method" => Some(self.parts.method.to_string()),
            _ => {
                let field = name.strip_prefix("header_")?.replace('_', "-");
                if field == HOST.as_str() { self.host() } else { self.header_text(&field) }
            }
        }
    }
}

/// Whether any request may have a value of this name.
pub(super) fn is_of_request(name: &str) -> bool {
    matches!(name, "host" | "method") || name.starts_with("header_")
}
