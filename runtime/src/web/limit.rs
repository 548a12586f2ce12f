//! Limits around a whole router.

pub(super) mod checks;
pub(super) mod gate;
mod service;

use std::sync::Arc;

use http::{Response, StatusCode};
use tallygate_rules::{CALLS, Rule};

use self::checks::{Effects, Limited};
use self::gate::{Exemptions, Gate, Guard, exempt_networks};
pub use self::service::{LimitBody, LimitService};
use super::parts::Parts;
use crate::context::KeyedPolicy;
use crate::decision::Rejection;
use crate::error::Error;
use crate::limiter::Limiter;
use crate::observe::opaque_debug;
use crate::policy::Policy;
use crate::request_pattern::{PathPattern, check_method};

/// Limits every request of a router by a policy. It is a layer of `tower`, and a middleware of actix-web.
///
/// The key consists of text and values of the [context](crate::context), with the filters of the attribute: `{@ip}`,
/// `{@user:lower}`, `{@method} {@route}`. A denied request does not reach the router: the response is a
/// [`Problem`](super::Problem), or a status of gRPC.
///
/// The values come from the [`Layer`](super::Layer) around this one. The key can also show the `method` of the request, its
/// `path`, which inside axum's `nest` lacks the prefix, the `route` that it matches, and any header: `{@header_x_api_key}` is
/// `X-Api-Key`, as [`header_text`](Parts::header_text) returns it, and `{@header_host}` is the [host](Parts::host) in
/// any version of HTTP. The `method` is a standard one or `other`, and `HEAD` is `GET`. All requests without a route
/// share the value `none`. A missing header is another subject than an empty one, or gives way to an alternative:
/// `{@header_x_api_key|@ip}`. A client can send any header. So show only one that a trusted proxy sets, or show it
/// beside a value that the client cannot choose. Without a layer around the limit, the client is the address of the
/// socket, unless a [context](crate::context::scope) around it has an `ip`, and the response has the fields of
/// [`Layer::new`](super::Layer::new).
///
/// A layer *inside* the limit comes too late: behind a proxy, all clients would share one limit. The log reports it as
/// an error, once. In axum and actix-web, add the limit first and the layer after it; in tonic, the other way round.
///
/// If clones of one limit are layers of a router and of another that is nested in it, a request passes the limit twice.
/// With the same subjects, it counts once, and the log reports an error, once.
///
/// CORS preflights are not limited [by default](Limit::with_options_requests): browsers send them before other requests. They
/// are `OPTIONS` requests with the fields `Origin` and `Access-Control-Request-Method`. Put a layer for CORS outside this one,
/// so that browsers can read the responses.
///
/// # Errors
///
/// The key is wrong: it is blank, a placeholder is not a value of the context or has an unknown filter, no separator is
/// between two of them, or a value has no braces: `@ip`.
///
/// # Examples
///
#[cfg_attr(feature = "axum", doc = "```")]
#[cfg_attr(not(feature = "axum"), doc = "```ignore")]
/// use std::time::Duration;
/// use axum::Router;
/// use axum::routing::get;
/// use tallygate::web::{self, ClientIp};
/// use tallygate::{Policy, Rule};
///
/// fn router() -> Result<Router, tallygate::Error> {
///     let policy = Policy::builder("api").rule(Rule::sliding_window(100, Duration::from_secs(60))).build()?;
///     let router = Router::new()
///         .route("/items", get(|| async { "…" }))
///         .route("/health", get(|| async { "well" }))
///         .layer(web::limit(&policy, "{@ip}")?.exempt_paths(["/health"])?)
///         .layer(web::Layer::new().client_ip(ClientIp::behind(["10.0.0.0/8"])?).on_success(true));
///     Ok(router)
/// }
/// # router().unwrap();
/// ```
pub fn limit(policy: &Policy, key: &str) -> Result<Limit, Error> {
    let settings = LimitSettings {
        keyed: KeyedPolicy::new("web::limit", policy, key)?,
        limiter: None,
        exemptions: Exemptions::default(),
        shadow: false,
        costs: Vec::new(),
        counts: None,
        effects: Effects::default(),
    };
    Ok(Limit { settings: Arc::new(settings) })
}

/// A limit around a whole router: see [`limit`].
#[derive(Clone)]
#[must_use = "a limit does nothing until it is added to a router"]
pub struct Limit {
    settings: Arc<LimitSettings>,
}

impl Limit {
    /// Sets the limiter that decides. By default, it is the installed one.
    pub fn limiter(self, limiter: &Limiter) -> Self {
        self.set(|settings| settings.limiter = Some(limiter.clone()))
    }

    /// Sets the key of another subject of the policy, by the label of
    /// [`PolicyBuilder::rule_on`](crate::PolicyBuilder::rule_on). Each subject needs a key: without one, no request can
    /// be decided, and the log reports an error for the first.
    ///
    /// # Errors
    ///
    /// The policy has no rule on a subject with that label, or the key is wrong, as for [`limit`].
    pub fn subject(mut self, label: impl Into<String>, key: &str) -> Result<Self, Error> {
        Arc::make_mut(&mut self.settings).keyed.set_subject(label.into(), key)?;
        Ok(self)
    }

    /// Limits only requests of these methods, like `["POST", "PUT"]`. `GET` includes `HEAD`, as it does in routers, and `POST`
    /// includes `post`, which handlers of any method answer.
    ///
    /// # Errors
    ///
    /// The list is empty, or one of them is not a method: their names are in capitals.
    pub fn methods<M: Into<String>>(self, methods: impl IntoIterator<Item = M>) -> Result<Self, Error> {
        let methods: Vec<String> = methods.into_iter().map(Into::into).collect();
        if methods.is_empty() {
            return Err(Error::new(
                "`methods` must not be empty, like `[\"POST\"]`; leave it out to limit all methods",
            ));
        }
        for method in &methods {
            check_method(method).map_err(|mistake| Error::new(format!("`methods`: {mistake}")))?;
        }
        Ok(self.set(|settings| settings.exemptions.methods = Some(methods)))
    }

    /// Limits all `OPTIONS` requests, also those that are CORS preflights. Use it where a layer for CORS stands outside of the
    /// limit and answers preflights itself: any other request that looks like one then counts.
    pub fn with_options_requests(self) -> Self {
        self.set(|settings| settings.exemptions.limits_preflights = true)
    }

    /// Exempts requests of these paths, like `/health`. A path that ends in `/*` matches all paths with the same start.
    /// A path that another server may read otherwise is exempt only if each reading is: `/assets/../api` is limited beside
    /// `/assets/*`.
    ///
    /// # Errors
    ///
    /// One of them matches no path: it does not start with `/`, has a `*` elsewhere than in `/*` at its end, or has one
    /// of `?`, `#`, `{` and `}`.
    pub fn exempt_paths<P: AsRef<str>>(self, paths: impl IntoIterator<Item = P>) -> Result<Self, Error> {
        let paths: Result<Vec<_>, _> = paths.into_iter().map(|path| PathPattern::parse(path.as_ref())).collect();
        let paths = paths.map_err(|mistake| Error::new(format!("`exempt_paths`: {mistake}")))?;
        Ok(self.set(|settings| settings.exemptions.paths.extend(paths)))
    }

    /// Exempts requests of clients in these networks, like `10.0.0.0/8` or `192.0.2.7`. If the `ip` comes from a
    /// context of the application and not from a layer, no client is exempt.
    ///
    /// The address of a proxy in place of its client, a [fallback](super::ClientIp::is_fallback), exempts nobody, so checks that a
    /// proxy makes itself are exempt only by their [paths](Self::exempt_paths).
    ///
    /// # Errors
    ///
    /// One of them is not a network, or contains every address.
    pub fn exempt_addresses<N: AsRef<str>>(self, networks: impl IntoIterator<Item = N>) -> Result<Self, Error> {
        let networks = exempt_networks(networks)?;
        Ok(self.set(|settings| settings.exemptions.networks.extend(networks)))
    }

    /// Exempts requests for which this function returns true. Exempt paths by [`exempt_paths`](Self::exempt_paths): a router may
    /// hand a request to another handler than its [`path`](Parts::path) shows.
    pub fn exempt_if(self, exempts: impl Fn(&Parts<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.exemptions.conditions.push(Arc::new(exempts)))
    }

    /// Decides, counts and reports to the log and the metrics, but denies nothing: to try a limit.
    pub fn shadow(self) -> Self {
        self.set(|settings| settings.shadow = true)
    }

    /// Sets the cost of a request: 1 by default, and at least 1.
    pub fn cost(self, cost: impl Fn(&Parts<'_>) -> u64 + Send + Sync + 'static) -> Self {
        // The client may influence the cost, but no request is free.
        self.set_cost(CALLS, Arc::new(move |parts| cost(parts).max(1)))
    }

    /// Sets what a request costs in a unit of the policy, like `|_| 500`: see [`Check::cost_of`](crate::Check::cost_of).
    /// `"calls"` names the [`cost`](Self::cost) of the request itself.
    ///
    /// Without it, a request costs nothing in that unit, and is denied while nothing of it is left. So the unit's rules limit
    /// nothing unless other calls of the policy use it.
    ///
    /// # Errors
    ///
    /// No rule of the policy counts the unit. A limit on concurrent calls counts no costs.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{Policy, Rule, web};
    ///
    /// let minute = Duration::from_secs(60);
    /// let policy = Policy::builder("uploads")
    ///     .rule(Rule::sliding_window(60, minute))
    ///     .rule(Rule::sliding_window(50_000_000, minute).counting("bytes"))
    ///     .build()?;
    /// let limit = web::limit(&policy, "{@ip}")?.cost_of("bytes", |request| {
    ///     request.header_text("content-length").and_then(|length| length.parse().ok()).unwrap_or(1_000_000)
    /// })?;
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn cost_of(self, unit: &str, cost: impl Fn(&Parts<'_>) -> u64 + Send + Sync + 'static) -> Result<Self, Error> {
        self.settings.keyed.policy.check_counted("cost_of", unit)?;
        Ok(if unit == CALLS { self.cost(cost) } else { self.set_cost(unit, Arc::new(cost)) })
    }

    fn set_cost(self, unit: &str, cost: Arc<FindCost>) -> Self {
        self.set(|settings| {
            settings.costs.retain(|(known, _)| known != unit);
            settings.costs.push((unit.to_owned(), cost));
        })
    }

    /// Sets the counts of the rules for each request, as by the plan of its user: see [`Policy::with_counts`]. Operators see `n`
    /// in place of the counts, which only the requests know.
    pub fn counts(self, counts: impl Fn(&Parts<'_>) -> Vec<u64> + Send + Sync + 'static) -> Self {
        self.set(|settings| {
            let own = match settings.counts.take() {
                Some(before) => before.own,
                None => settings.keyed.policy.rules().iter().map(Rule::count).collect(),
            };
            settings.keyed.policy = settings.keyed.policy.with_varying_counts(|_| true);
            settings.counts = Some(Counts { find: Arc::new(counts), own });
        })
    }

    /// Refunds requests for whose response this function returns true, so that only the others count. A request counts until its
    /// response has begun, so that many at once cannot pass a limit on failures.
    ///
    /// The status is that of HTTP, which is 200 for most calls of gRPC. For a concurrency limit, a request that is refunded
    /// is running until its body was sent, as any other. A service that fails without a response counts as one with status 500.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{Policy, Rule, web};
    ///
    /// let policy = Policy::builder("failed logins").rule(Rule::sliding_window(5, Duration::from_secs(900))).build()?;
    /// let limit = web::limit(&policy, "{@ip}")?.refund_if(|status| status.as_u16() != 401);
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn refund_if(self, refund_if: impl Fn(StatusCode) -> bool + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.effects.refund_if = Some(Arc::new(refund_if)))
    }

    /// Sets the response to requests that this limit rejects, in place of that of [`Layer::reject`](super::Layer::reject), or else
    /// of a [`Problem`](super::Problem): `Response::from(rejection)` is that one, to start from. The layer adds its fields to it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::Response;
    /// use tallygate::{Policy, Rule, web};
    ///
    /// let policy = Policy::builder("pages").rule(Rule::sliding_window(60, Duration::from_secs(60))).build()?;
    /// let limit = web::limit(&policy, "{@ip}")?.reject(|rejection, _request| {
    ///     let mut response = Response::from(rejection).map(|_: String| "<h1>Slow down</h1>".to_owned());
    ///     response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/html"));
    ///     response
    /// });
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn reject(self, reject: impl Fn(&Rejection, &Parts<'_>) -> Response<String> + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.effects.reject = Some(Arc::new(reject)))
    }

    /// Sets the texts of this limit's denials: see [`Check::messages`](crate::Check::messages). Those of
    /// [`Layer::messages`](super::Layer::messages) go first.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{Policy, Rule, web};
    ///
    /// let policy = Policy::builder("pages").rule(Rule::sliding_window(60, Duration::from_secs(60))).build()?;
    /// let limit = web::limit(&policy, "{@ip}")?.messages(|_| Some("60 pages a minute are enough".to_owned()));
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn messages(self, messages: impl Fn(&Rejection) -> Option<String> + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.effects.messages = Some(Arc::new(messages)))
    }

    fn set(mut self, set: impl FnOnce(&mut LimitSettings)) -> Self {
        set(Arc::make_mut(&mut self.settings));
        self
    }
}

opaque_debug!(Limit, limit => { policy: limit.settings.keyed.policy.name() });

#[derive(Clone)]
struct LimitSettings {
    keyed: KeyedPolicy,
    /// `None` means the installed limiter.
    limiter: Option<Limiter>,
    exemptions: Exemptions,
    shadow: bool,
    /// What a request costs, by the names of units; one call if none is named.
    costs: Vec<(String, Arc<FindCost>)>,
    /// `None` are the counts of the policy.
    counts: Option<Counts>,
    effects: Effects,
}

type FindCost = dyn Fn(&Parts<'_>) -> u64 + Send + Sync;
type FindCounts = dyn Fn(&Parts<'_>) -> Vec<u64> + Send + Sync;

/// The counts of each request.
#[derive(Clone)]
struct Counts {
    find: Arc<FindCounts>,
    /// The counts of the policy, for rules behind the last count that was found.
    own: Arc<[u64]>,
}

impl Counts {
    fn of(&self, parts: &Parts<'_>) -> Vec<u64> {
        let mut counts = (self.find)(parts);
        counts.extend(self.own.iter().skip(counts.len()));
        counts
    }
}

impl Gate for LimitSettings {
    fn limited(&self, parts: &Parts<'_>) -> Limited {
        let Self { keyed, limiter, exemptions, shadow, effects, .. } = self;
        keyed.report_lack_of_keys();
        if exemptions.apply(parts) {
            return Limited::default();
        }
        let counted = self.counts.as_ref().map(|counts| keyed.policy.with_counts(counts.of(parts)));
        let guard = Guard {
            policy: counted.as_ref().unwrap_or(&keyed.policy),
            key: &keyed.key,
            subjects: &keyed.others,
            limiter: limiter.as_ref(),
            costs: self.costs.iter().map(|(unit, cost)| (unit.as_str(), cost(parts))).collect(),
            is_shadow: *shadow,
            effects: effects.clone(),
        };
        Limited(vec![guard.decided(parts)])
    }
}

#[cfg(test)]
mod tests {
    //! The policies that limits hold.

    use std::time::Duration;

    use tallygate_rules::Rule;

    use super::*;

    #[test]
    fn a_policy_that_only_a_limit_holds_is_known() {
        let rule = Rule::sliding_window(1, Duration::from_secs(60));
        let policy = Policy::builder("web::limit::only").rule(rule).build().unwrap();
        let limit = limit(&policy.with_counts([7]), "{@ip}").unwrap();
        drop(policy);
        assert_eq!(Limiter::policy("web::limit::only").unwrap().key(), Some("{@ip}"));
        #[cfg(feature = "config")]
        {
            let file = crate::config::Policies::from_toml("[policy.'web::limit::only']\nrules = ['2 per 1h']").unwrap();
            assert_eq!(Limiter::in_memory().apply(&file).unwrap().unknown(), []);
        }
        drop(limit);
    }

    #[test]
    fn the_policy_of_a_limit_knows_how_its_subjects_are_written() {
        let minute = Duration::from_secs(60);
        let rules = Policy::builder("api").rule(Rule::sliding_window(1, minute));
        let policy = rules.rule_on("network", Rule::sliding_window(2, minute)).key("by hand").build().unwrap();
        let limit = limit(&policy, "{@ip}").unwrap().subject("network", "{@ip:subnet}").unwrap();
        let known = &limit.settings.keyed.policy;
        assert_eq!((known.key(), known.templates().get(Some("network"))), (Some("{@ip}"), Some("{@ip:subnet}")));
        assert_eq!((known, policy.key()), (&policy, Some("by hand")));
    }
}
