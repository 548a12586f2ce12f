//! Limits of requests that are set by a file.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use super::limit::LimitService;
use super::limit::checks::{DenialText, Effects, Limited, RefundIf, Reject};
use super::limit::gate::{Exemptions, Gate, Guard, exempt_networks, request_value, request_values};
#[cfg(feature = "utoipa")]
use super::openapi::document::{add, answer_problems, for_each_operation};
#[cfg(feature = "utoipa")]
use super::openapi::limit_responses;
use super::parts::Parts;
use super::problem::Problem;
use crate::config::{RefundedStatus, RequestLimit};
use crate::context::{self, Context};
use crate::error::Error;
use crate::limiter::{Check, Limiter};
use crate::observe::opaque_debug;
#[cfg(feature = "utoipa")]
use crate::request_pattern::{RequestMethod, RequestPath};

/// Limits requests by those policies with `match` in the file that this limiter has [applied](Limiter::apply). It is a
/// layer of `tower`, and a middleware of actix-web.
///
/// Each request is limited only by the first policy of the file that matches its path and its method. Every policy in shadow
/// that matches decides it, too, wherever it stands, and denies nothing. A request that matches none is not limited. A path
/// that servers read in several ways is limited by the first policy of each reading. CORS preflights are matched only by
/// policies whose `methods` list `OPTIONS`, and `GET` includes `HEAD`. Everything else is as in [`limit`](super::limit).
///
/// When the limiter applies another file, that file limits the next request.
///
/// # Errors
///
/// The limiter has applied no file yet.
///
/// # Examples
///
#[cfg_attr(feature = "axum", doc = "```")]
#[cfg_attr(not(feature = "axum"), doc = "```ignore")]
/// use axum::Router;
/// use axum::routing::post;
/// use tallygate::config::Policies;
/// use tallygate::{Limiter, web};
///
/// fn router(limiter: &Limiter) -> Result<Router, tallygate::Error> {
///     let text = r#"
///         [policy.login]
///         match = { path = "/login", methods = ["POST"] }
///         key = "{@ip}"
///         rules = ["10 per 1m"]
///     "#;
///     limiter.apply(&Policies::from_toml(text)?)?;
///     let router = Router::new().route("/login", post(|| async { "welcome" }));
///     Ok(router.layer(web::limits(limiter)?).layer(web::Layer::new()))
/// }
/// # router(&Limiter::in_memory()).unwrap();
/// ```
pub fn limits(limiter: &Limiter) -> Result<Limits, Error> {
    if limiter.applied().is_none() {
        return Err(Error::new(
            "`web::limits`: this limiter has applied no policies of a file; call `limiter.apply(&policies)?` before",
        ));
    }
    let settings = LimitsSettings { limiter: limiter.clone(), exemptions: Exemptions::default() };
    limiter.note_limits_of_requests();
    Ok(Limits { settings: Arc::new(settings) })
}

/// Limits of requests that are set by a file: see [`limits`].
#[derive(Clone)]
#[must_use = "limits do nothing until they are added to a router"]
pub struct Limits {
    settings: Arc<LimitsSettings>,
}

#[derive(Clone)]
struct LimitsSettings {
    limiter: Limiter,
    exemptions: Exemptions,
}

impl Limits {
    /// Exempts requests of clients in these networks, like `10.0.0.0/8` or `192.0.2.7`: see
    /// [`Limit::exempt_addresses`](super::Limit::exempt_addresses).
    ///
    /// # Errors
    ///
    /// One of them is not a network, or contains every address.
    pub fn exempt_addresses<N: AsRef<str>>(self, networks: impl IntoIterator<Item = N>) -> Result<Self, Error> {
        let networks = exempt_networks(networks)?;
        Ok(self.set(|settings| settings.exemptions.networks.extend(networks)))
    }

    /// Exempts requests for which this function returns true.
    pub fn exempt_if(self, exempts: impl Fn(&Parts<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.exemptions.conditions.push(Arc::new(exempts)))
    }

    /// Limits CORS preflights like other `OPTIONS` requests: see
    /// [`Limit::with_options_requests`](super::Limit::with_options_requests).
    pub fn with_options_requests(self) -> Self {
        self.set(|settings| settings.exemptions.limits_preflights = true)
    }

    /// Writes the limits of the file in force into a document of OpenAPI: into each operation the responses to requests that
    /// its policy rejects, with their limits in words.
    ///
    /// It is the first policy that matches the path and the method as they stand in the document, so that a policy for
    /// `/users/*` is that of `/users/{id}`. Policies in shadow reject nothing. Another file that is applied later limits requests
    /// by other rules: call it for each document that is sent, or say in the document when it was made.
    ///
    /// # Examples
    ///
    /// ```
    /// use tallygate::config::Policies;
    /// use tallygate::{Limiter, web};
    /// use utoipa::OpenApi;
    ///
    /// /// Searches.
    /// #[utoipa::path(get, path = "/search", responses((status = 200, description = "what was found")))]
    /// async fn search() {}
    ///
    /// #[derive(OpenApi)]
    /// #[openapi(paths(search))]
    /// struct Api;
    ///
    /// let limiter = Limiter::in_memory();
    /// let text = "[policy.search]\nmatch = { path = '/search' }\nkey = '{@ip}'\nrules = ['60 per 1m']";
    /// limiter.apply(&Policies::from_toml(text)?)?;
    /// let mut document = Api::openapi();
    /// web::limits(&limiter)?.describe(&mut document);
    /// let limited = serde_json::to_value(&document)?["paths"]["/search"]["get"]["responses"]["429"].clone();
    /// assert_eq!(limited["description"], "Too many requests.\n\n* at most `60 per 1m`");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "utoipa")]
    pub fn describe(&self, document: &mut utoipa::openapi::OpenApi) {
        let Some(policies) = self.settings.limiter.applied() else { return };
        for_each_operation(document, |path, name, responses| {
            let (path, method) = (RequestPath::read(path, path), RequestMethod { name, is_left_out: false });
            let matches = |limit: &&RequestLimit| path.readings().any(|reading| limit.is_for(method, reading));
            let enforced =
                policies.requests().as_slice().iter().filter(|limit| !limit.is_shadow && !limit.policy.is_shadow());
            let Some(limit) = { enforced }.find(matches).filter(|limit| !limit.exempts(&path)) else { return };
            let mut rejected = limit_responses(&limit.policy);
            if let Some(own) = &limit.effects.reject {
                answer_problems(&mut rejected, |rejection| own.in_place_of(Problem::from(rejection).response()));
            }
            for (status, response) in rejected {
                add(responses, status, response);
            }
        });
    }

    fn set(mut self, set: impl FnOnce(&mut LimitsSettings)) -> Self {
        set(Arc::make_mut(&mut self.settings));
        self
    }
}

impl Gate for LimitsSettings {
    fn limited(&self, parts: &Parts<'_>) -> Limited {
        let Some(policies) = self.limiter.applied().filter(|_| !self.exemptions.exempt(parts)) else {
            return Limited::default();
        };
        let deciding = self.deciding(policies.requests().as_slice(), parts);
        let left = deciding.into_iter().filter(|limit| !limit.exempts(parts.request_path()));
        Limited(left.map(|limit| self.decided(limit, parts)).collect())
    }
}

impl LimitsSettings {
    /// Returns the policies that decide a request, each once. The handler that a path reaches depends on who reads the
    /// path, so each reading has a policy that is enforced. Mostly, that is one policy.
    fn deciding<'l>(&self, limits: &'l [RequestLimit], parts: &Parts<'_>) -> Vec<&'l RequestLimit> {
        let method = parts.request_method(self.exemptions.limits_preflights);
        let mut deciding = BTreeMap::new();
        for path in parts.request_path().readings() {
            // A policy in shadow is tried out beside the one that is enforced, whichever stands first.
            let mut is_enforced = false;
            let matching = limits.iter().enumerate().filter(|(_, limit)| limit.is_for(method, path));
            deciding.extend(
                matching.filter(|(_, limit)| self.is_shadow(limit, parts) || !mem::replace(&mut is_enforced, true)),
            );
        }
        deciding.into_values().collect()
    }

    /// Whether a policy denies this request nothing now, as an override or the rules of its subject may say.
    fn is_shadow(&self, limit: &RequestLimit, parts: &Parts<'_>) -> bool {
        let may_be = limit.is_shadow || limit.policy.is_shadow() || self.limiter.any_sets_shadow();
        let is_now = || {
            let (check, _) = self.decided(limit, parts);
            check.is_shadow()
        };
        may_be && is_now()
    }

    fn decided(&self, limit: &RequestLimit, parts: &Parts<'_>) -> (Check<'static>, Effects) {
        let planned = limit.effects.planned(&limit.policy, |name| {
            let known = Context::current().and_then(|context| context.get(name).map(str::to_owned));
            known.or_else(|| request_value(name, parts))
        });
        let guard = Guard {
            policy: planned.as_ref().unwrap_or(&limit.policy),
            key: &limit.key,
            subjects: &limit.subjects,
            limiter: Some(&self.limiter),
            costs: limit.effects.costs.iter().map(|(unit, cost)| (unit.as_str(), *cost)).collect(),
            is_shadow: limit.is_shadow,
            effects: self.effects(limit, parts),
        };
        guard.decided(parts)
    }

    fn effects(&self, limit: &RequestLimit, parts: &Parts<'_>) -> Effects {
        let messages = limit.messages.clone().map(|messages| -> Arc<DenialText> {
            let values = request_values(messages.names(), parts);
            let limiter = self.limiter.clone();
            Arc::new(move |rejection| context::scope_fn(values.clone(), || messages.text(rejection, limiter.secret())))
        });
        Effects { messages, ..effects(limit) }
    }
}

fn effects(limit: &RequestLimit) -> Effects {
    let reject = limit.effects.reject.clone().map(|own| -> Arc<Reject> {
        Arc::new(move |rejection, _| own.in_place_of(Problem::from(rejection).response()))
    });
    let refund_if = limit.effects.refund_if.map(|refunded| -> Arc<RefundIf> {
        Arc::new(move |status| match refunded {
            RefundedStatus::Success => status.as_u16() < 400,
            RefundedStatus::Failure => status.as_u16() >= 400,
        })
    });
    Effects { reject, refund_if, messages: None }
}

impl<S> tower_layer::Layer<S> for Limits {
    type Service = LimitService<S>;

    fn layer(&self, inner: S) -> LimitService<S> {
        LimitService { inner, gate: self.settings.clone() }
    }
}

opaque_debug!(Limits, limits => { limiter: limits.settings.limiter });
