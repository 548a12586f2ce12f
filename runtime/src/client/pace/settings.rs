//! The settings of a pace, and how it decides about a call by them.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::header::HOST;
use http::request::Parts;
use http::{HeaderValue, response};

use crate::call::CallOptions;
use crate::client::{Heard, ResponseReader};
use crate::context::{self, Context, ContextKey};
use crate::decision::Permit;
use crate::field_text::{field_text, host_text};
use crate::limiter::{Check, Limiter};
use crate::policy::Policy;

#[derive(Clone)]
pub(super) struct PaceSettings {
    pub(super) policy: Policy,
    pub(super) key: ContextKey,
    /// `None` means the installed limiter.
    pub(super) limiter: Option<Limiter>,
    /// `None` means that a denied call fails at once.
    pub(super) wait: Option<Duration>,
    pub(super) values: Vec<(Cow<'static, str>, Arc<RequestValue>)>,
    /// The names of the values, which the contexts share.
    pub(super) names: Arc<[Cow<'static, str>]>,
    /// What a call costs, by the names of units; one call if none is named.
    pub(super) costs: Vec<(String, Arc<RequestCost>)>,
    pub(super) responses: ResponseReader,
}

/// Finds a value in a request.
pub(super) type RequestValue = dyn Fn(&Parts) -> Option<String> + Send + Sync;

pub(super) type RequestCost = dyn Fn(&Parts) -> u64 + Send + Sync;

impl PaceSettings {
    /// Returns the check of a call in the current context.
    pub(super) fn check(&self, request: &Parts) -> Check<'static> {
        let limiter = self.limiter.as_ref().unwrap_or_else(|| Limiter::installed());
        let subject = context::enter(&mut self.context(request), || self.key.subject(limiter.secret()));
        let mut check = Check::new(limiter, &self.policy, &subject, CallOptions::PLAIN);
        for (unit, cost) in &self.costs {
            check = check.cost_of(unit, cost(request));
        }
        if let Some(wait) = self.wait {
            check = check.wait(wait);
        }
        check.into_owned()
    }

    /// Returns the values of the request that the key shows.
    fn context(&self, request: &Parts) -> Context {
        let mut context = Context::new().looking_for(&self.names);
        for name in self.key.names() {
            let own = self.values.iter().find(|(known, _)| known == name);
            let value = match own {
                Some((_, find)) => find(request),
                None => request_value(name, request),
            };
            if let Some(value) = value {
                context = context.with(name.to_owned(), value);
            }
        }
        context
    }

    /// Returns what a response says about limits, and pauses the subject of its call if it says so.
    pub(super) async fn hear(&self, response: &response::Parts, permit: Option<&Permit>) -> Heard {
        let heard = self.responses.read(response.status, &response.headers);
        if let Some(permit) = permit.filter(|_| self.policy.longest_pause().is_some()) {
            // If this fails, this process honours the pause all the same.
            permit.pause_logged(heard.wait()).await;
        }
        heard
    }
}

/// Returns the value of that name which any request has.
fn request_value(name: &str, request: &Parts) -> Option<String> {
    match name {
        "host" => host(request),
        "method" => Some(request.method.to_string()),
        _ => {
            let field = name.strip_prefix("header_")?.replace('_', "-");
            if field == HOST.as_str() { host(request) } else { header_text(&field, request) }
        }
    }
}

fn host(request: &Parts) -> Option<String> {
    let written = request.uri.authority().map(|authority| authority.as_str().to_owned());
    written.or_else(|| header_text(HOST.as_str(), request)).map(|written| host_text(&written))
}

fn header_text(field: &str, request: &Parts) -> Option<String> {
    let lines: Vec<&[u8]> = request.headers.get_all(field).iter().map(HeaderValue::as_bytes).collect();
    field_text(field, &lines)
}
