//! The gate of a service: it says whether a request is limited, and by which checks.

use std::sync::Arc;

use ipnet::IpNet;

use super::checks::{Effects, Limited};
use crate::call::CallOptions;
use crate::context::{self, Context, ContextKey};
use crate::error::Error;
use crate::limiter::{Check, Limiter};
use crate::observe::{ReportedOnce, log};
use crate::policy::Policy;
use crate::request_pattern::{PathPattern, shown_method, surely_contain};
use crate::web::client_ip::{self, ClientIp};
use crate::web::parts::Parts;

pub(in crate::web) trait Gate: Send + Sync {
    /// Returns the checks of the request in the current context.
    fn limited(&self, parts: &Parts<'_>) -> Limited;
}

pub(in crate::web) struct Guard<'a> {
    pub(in crate::web) policy: &'a Policy,
    pub(in crate::web) key: &'a ContextKey,
    /// The other subjects of the policy, by their labels.
    pub(in crate::web) subjects: &'a [(String, ContextKey)],
    /// `None` is the installed limiter.
    pub(in crate::web) limiter: Option<&'a Limiter>,
    /// What the request costs, by the names of units; one call if none is named.
    pub(in crate::web) costs: Vec<(&'a str, u64)>,
    pub(in crate::web) is_shadow: bool,
    pub(in crate::web) effects: Effects,
}

impl Guard<'_> {
    /// Returns the check by this policy in the current context.
    pub(in crate::web) fn decided(self, parts: &Parts<'_>) -> (Check<'static>, Effects) {
        let check = self.check(parts);
        let check = match self.effects.messages.clone() {
            Some(messages) => check.messages(move |rejection| messages(rejection)),
            None => check,
        };
        (check, self.effects)
    }

    fn check(&self, parts: &Parts<'_>) -> Check<'static> {
        let limiter = self.limiter.unwrap_or_else(|| Limiter::installed());
        let names = self.subjects.iter().flat_map(|(_, key)| key.names()).chain(self.key.names());
        let mut context = request_values(names, parts);
        context::enter(&mut context, || {
            let subject = self.key.subject(limiter.secret());
            let refundable = self.effects.refund_if.is_some();
            let options = CallOptions { shadow: self.is_shadow, refundable, ..CallOptions::PLAIN };
            let check = Check::new(limiter, self.policy, &subject, options);
            let check = self.costs.iter().fold(check, |check, (unit, cost)| check.cost_of(unit, *cost));
            let others = self.subjects.iter().map(|(label, key)| (label, key.subject(limiter.secret())));
            others.fold(check, |check, (label, subject)| check.subject(label, &subject)).into_owned()
        })
    }
}

/// Returns the values of the request of these names, as far as the context does not have them.
pub(in crate::web) fn request_values<'n>(names: impl Iterator<Item = &'n str>, parts: &Parts<'_>) -> Context {
    let around = Context::current().unwrap_or_default();
    let missing = names.filter(|name| around.get(name).is_none());
    missing.fold(Context::new(), |context, name| match request_value(name, parts) {
        Some(value) => context.with(name.to_owned(), value),
        None => context,
    })
}

/// The route in keys of all requests that have none. No route is like it, because each begins with a slash.
const NO_ROUTE: &str = "none";

/// Returns the value of that name which any request has.
pub(in crate::web) fn request_value(name: &str, parts: &Parts<'_>) -> Option<String> {
    match name {
        "method" => Some(shown_method(parts.method()).to_owned()),
        "path" => Some(parts.path().to_owned()),
        "route" => Some(parts.route().unwrap_or_else(|| NO_ROUTE.to_owned())),
        _ => {
            let field = name.strip_prefix("header_")?.replace('_', "-");
            parts.header_text(&field)
        }
    }
}

/// The requests that a limit leaves alone.
#[derive(Clone, Default)]
pub(in crate::web) struct Exemptions {
    /// The only methods that are limited; `None` is all of them.
    pub(super) methods: Option<Vec<String>>,
    pub(in crate::web) limits_preflights: bool,
    pub(super) paths: Vec<PathPattern>,
    pub(in crate::web) networks: Vec<IpNet>,
    pub(in crate::web) conditions: Vec<Arc<Condition>>,
}

/// Reads the networks of clients that are left alone.
pub(in crate::web) fn exempt_networks<N: AsRef<str>>(
    networks: impl IntoIterator<Item = N>,
) -> Result<Vec<IpNet>, Error> {
    client_ip::networks("exempt_addresses", "exempts everybody; list the networks that you trust", networks)
}

pub(in crate::web) type Condition = dyn Fn(&Parts<'_>) -> bool + Send + Sync;

impl Exemptions {
    /// Returns whether a request is left alone.
    pub(super) fn apply(&self, parts: &Parts<'_>) -> bool {
        let method = parts.request_method(self.limits_preflights);
        !method.is_limited(self.methods.as_deref()) || self.exempt(parts)
    }

    /// Returns whether a request is exempt by its path or its client, whatever its method is.
    pub(in crate::web) fn exempt(&self, parts: &Parts<'_>) -> bool {
        surely_contain(&self.paths, parts.request_path())
            || self.exempts_client(parts)
            || self.conditions.iter().any(|condition| condition(parts))
    }

    fn exempts_client(&self, parts: &Parts<'_>) -> bool {
        let is_exempt = |client: ClientIp| self.networks.iter().any(|network| network.contains(&client.address()));
        let exempt = parts.found_client().filter(|client| is_exempt(*client));
        if exempt.is_some_and(ClientIp::is_fallback) {
            static REPORTED: ReportedOnce = ReportedOnce::new();
            if REPORTED.is_first() {
                log::fallback_not_exempt();
            }
        }
        exempt.is_some_and(|client| !client.is_fallback())
    }
}
