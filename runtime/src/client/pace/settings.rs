//! The settings of a pace, and what they make of a request, whatever the client.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::HOST;
use http::request::Parts;

use super::traffic::{Departure, Traffic};
use crate::address;
use crate::client::ResponseReader;
use crate::context::{self, Context, KeyedPolicy, Maker};
use crate::field_text::{field_text, host_text};
use crate::limiter::Limiter;
use crate::subject::Subject;
use crate::system::TokioInstant;

#[derive(Clone)]
pub(super) struct PaceSettings {
    pub(super) keyed: KeyedPolicy,
    /// `None` means the installed limiter.
    pub(super) limiter: Option<Limiter>,
    /// `None` means that a denied call fails at once.
    pub(super) wait: Option<Duration>,
    pub(super) values: Vec<(Cow<'static, str>, Arc<RequestValue>)>,
    /// The names of what the pace looks for in each request, which the contexts share.
    pub(super) names: Arc<[Cow<'static, str>]>,
    /// Whether the keys show nothing but these.
    pub(super) shows_only_requests: bool,
    /// What a call costs, by the names of units; one call if none is named.
    pub(super) costs: Vec<(String, Arc<RequestCost>)>,
    /// The units of which each call is settled for what its meters say.
    pub(super) metered: Vec<String>,
    pub(super) responses: ResponseReader,
    /// The names of the rules that count what the other side counts, by whatever window.
    pub(super) shared_rules: Vec<String>,
    pub(super) traffic: Arc<Traffic>,
}

/// Finds a value in a request.
pub(super) type RequestValue = dyn Fn(&Parts) -> Option<String> + Send + Sync;

pub(super) type RequestCost = dyn Fn(&Parts) -> u64 + Send + Sync;

impl PaceSettings {
    pub(super) fn limiter(&self) -> &Limiter {
        self.limiter.as_ref().unwrap_or_else(|| Limiter::installed())
    }

    /// Whether functions of the program look at the parts of a request.
    #[cfg(feature = "client-reqwest")]
    pub(super) fn looks_at_parts(&self) -> bool {
        !self.values.is_empty() || !self.costs.is_empty()
    }

    /// Returns the place of a call in the traffic of the subject that may be paused, if the policy makes something of its answer.
    pub(super) fn departure(&self, subject: &Subject, others: &[Subject]) -> Option<Departure> {
        let KeyedPolicy { policy, others: keys, .. } = &self.keyed;
        policy.longest_pause()?;
        let paused = policy.paused_label();
        let position = keys.iter().position(|(label, _)| Some(label.as_str()) == paused);
        let paused = position.and_then(|position| others.get(position)).unwrap_or(subject);
        Some(self.traffic.prepare(paused, TokioInstant::now()))
    }

    /// Returns the main subject of a request, and the others in the order of their keys.
    pub(super) fn subjects(&self, request: &PacedRequest<'_>) -> (Subject, Vec<Subject>) {
        let secret = self.limiter().secret();
        let others = || self.keyed.others.iter().map(|(_, key)| key);
        let value = |name: &str| self.value(name, request);
        // Most keys show nothing but what the request has: then no context has to be made.
        let at_once = || {
            let others = others().map(|key| key.subject_of(secret, value)).collect::<Option<_>>();
            self.keyed.key.subject_of(secret, value).zip(others)
        };
        self.shows_only_requests.then(at_once).flatten().unwrap_or_else(|| {
            context::enter(&mut self.context(request), || {
                (self.keyed.key.subject(secret), others().map(|key| key.subject(secret)).collect())
            })
        })
    }

    /// Notes the names of the values that the pace looks for: those that are set, and those of the keys that any request
    /// may have.
    pub(super) fn note_names(&mut self) {
        let of_requests =
            self.keyed.shown_names().filter(|name| is_of_request(name)).map(|name| name.to_owned().into());
        self.names = self.values.iter().map(|(name, _)| name.clone()).chain(of_requests).collect();
        let shows_only_requests = self.keyed.shown_names().all(|name| self.names.iter().any(|known| known == name));
        self.shows_only_requests = shows_only_requests;
    }

    /// Returns the value of the request that has this name.
    fn value(&self, name: &str, request: &PacedRequest<'_>) -> Option<String> {
        let own = self.values.iter().find(|(known, _)| known == name);
        let value = own.map_or_else(|| request.value(name), |(_, find)| find(request.parts))?;
        Some(if name == "ip" { address::counted(value) } else { value })
    }

    /// Returns the values of the request that the keys show. A value that this request lacks is not that of a request which this
    /// program answers meanwhile.
    fn context(&self, request: &PacedRequest<'_>) -> Context {
        let mut context = Context::new().looking_for(&self.names).made_by(Maker::Pace);
        for name in self.keyed.shown_names().filter(|name| self.names.iter().any(|known| known == name)) {
            context = match self.value(name, request) {
                Some(value) => context.with(name.to_owned(), value),
                None => context.without(name.to_owned()),
            };
        }
        context
    }
}

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
    fn value(&self, name: &str) -> Option<String> {
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
fn is_of_request(name: &str) -> bool {
    matches!(name, "host" | "method") || name.starts_with("header_")
}
