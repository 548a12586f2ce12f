//! The pace of calls to other servers.

mod paced_call;
#[cfg(feature = "client-reqwest")]
mod reqwest;
mod service;
mod settings;
mod traffic;

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use tallygate_rules::{CALLS, Role, Rule, meant, remedy};

pub use self::paced_call::{Meters, PacedBody};
pub use self::service::{PaceError, PaceService};
use self::settings::{PaceSettings, RequestCost};
use self::traffic::Traffic;
use super::ResponseReader;
use crate::context::KeyedPolicy;
use crate::error::Error;
use crate::limiter::Limiter;
use crate::observe::opaque_debug;
use crate::policy::Policy;

/// Paces the calls of a client by a policy, which a fleet shares in Redis. It is a layer of `tower` around a client that takes
/// requests of the crate `http`, such as hyper's.
///
/// The key consists of text and values of the [context](crate::context), with the filters of the attribute. It can show the `host` of
/// the request, in lower case and without the port, its `method`, any header, like `{@header_authorization:hash}`, and other
/// [values](Pace::value) of it.
///
/// A call is decided before it is sent. If it is denied, or no place is free within its [wait](Pace::wait), it fails with
/// [`PaceError::Rejected`], and nothing of its body was read. Nothing is sent twice: retries are the work of other layers, around
/// this one, so that each attempt counts. A call that was admitted counts even if it fails. Under a concurrency limit, it runs until
/// the body of its response ends.
///
/// A call takes its turn once the client is ready, so that it is sent as soon as it is admitted. A client that is ready for only so
/// many calls at a time keeps a place for each that waits: count them by [`Rule::concurrency`](crate::Rule::concurrency) instead.
///
/// What the response says about limits, its [`Heard`](super::Heard), is in its extensions. If the policy is
/// [`pausable`](crate::PolicyBuilder::pausable), the subject of the call is paused for the [wait](super::Heard::wait_for) that was
/// heard: in this process before the response is returned, and elsewhere as soon as the store has heard of it, for which nobody
/// waits. The policy's longest pause bounds it, too. Trailers are heard in the same way, though too late for extensions.
/// After a pause, one call at a time is sent, until an answer asks for no pause and is neither 429 nor 5xx, nor such a status of
/// gRPC. Where an answer says that less is left of a fixed window than is left here, because others have called, too, no more than
/// that is sent until its reset: see [`Permit::leave_at_most`](crate::Permit::leave_at_most).
///
/// Around a channel of tonic, a `ServiceBuilder` with `.map_err(Status::from).layer(pace)` makes a status of each [`PaceError`], with
/// the feature `tonic`.
///
/// # Errors
///
/// The key is wrong: it is blank, a placeholder is not a value of the context or has an unknown filter, no separator is
/// between two of them, or a value has no braces: `@host`.
///
/// # Examples
///
/// ```
/// use std::convert::Infallible;
/// use std::time::Duration;
/// use http::{Request, Response};
/// use tallygate::client::{self, Heard};
/// use tallygate::{Limiter, Policy, Rule};
/// use tower_layer::Layer as _;
/// use tower_service::Service as _;
/// # #[derive(Clone)]
/// # struct Client;
/// # impl tower_service::Service<Request<String>> for Client {
/// #     type Response = Response<String>;
/// #     type Error = Infallible;
/// #     type Future = std::future::Ready<Result<Self::Response, Infallible>>;
/// #     fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
/// #         std::task::Poll::Ready(Ok(()))
/// #     }
/// #     fn call(&mut self, _: Request<String>) -> Self::Future {
/// #         std::future::ready(Ok(Response::builder().header("ratelimit", r#""calls";r=7"#).body(String::new()).unwrap()))
/// #     }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = Policy::builder("partners").rule(Rule::sliding_window(50, Duration::from_secs(1))).build()?;
/// let pace = client::pace(&policy, "{@host}")?.wait(Duration::from_secs(30));
///
/// let mut client = pace.layer(Client);
/// let request = Request::get("https://partner.example/orders").body(String::new())?;
/// let response = client.call(request).await?;
/// let heard = response.extensions().get::<Heard>().unwrap();
/// assert_eq!(heard.limits()[0].remaining(), Some(7));
/// # Ok(())
/// # }
/// ```
pub fn pace(policy: &Policy, key: &str) -> Result<Pace, Error> {
    let mut settings = PaceSettings {
        keyed: KeyedPolicy::new("client::pace", policy, key)?,
        limiter: None,
        wait: None,
        values: Vec::new(),
        names: Arc::default(),
        shows_only_requests: false,
        costs: Vec::new(),
        metered: Vec::new(),
        responses: ResponseReader::new(),
        shared_rules: Vec::new(),
        traffic: Arc::new(Traffic::new()),
    };
    settings.note_names();
    Ok(Pace { settings: Arc::new(settings) })
}

/// The pace of calls to other servers: see [`pace`].
#[derive(Clone)]
#[must_use = "a pace does nothing until it is a layer around a client"]
pub struct Pace {
    settings: Arc<PaceSettings>,
}

impl Pace {
    /// Sets the limiter that decides. By default, it is the installed one.
    pub fn limiter(self, limiter: &Limiter) -> Self {
        self.set(|settings| settings.limiter = Some(limiter.clone()))
    }

    /// Sets the key of another subject of the policy, by the label of
    /// [`PolicyBuilder::rule_on`](crate::PolicyBuilder::rule_on). Each subject needs a key: without one, no call is sent, and the log
    /// reports an error for the first. A policy is [`pausable_on`](crate::PolicyBuilder::pausable_on) such a subject if the other side
    /// counts by something else than the main one.
    ///
    /// # Errors
    ///
    /// The policy has no rule on a subject with that label, or the key is wrong, as for [`pace`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{Policy, Rule, client};
    ///
    /// // Each customer has its share of what a host accepts.
    /// let minute = Duration::from_secs(60);
    /// let policy = Policy::builder("partners")
    ///     .rule(Rule::sliding_window(100, minute))
    ///     .rule_on("host", Rule::sliding_window(1_000, minute))
    ///     .pausable_on("host")
    ///     .build()?;
    /// let pace = client::pace(&policy, "{@header_x_customer}")?.subject("host", "{@host}")?;
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn subject(mut self, label: impl Into<String>, key: &str) -> Result<Self, Error> {
        let settings = Arc::make_mut(&mut self.settings);
        settings.keyed.set_subject(label.into(), key)?;
        settings.note_names();
        Ok(self)
    }

    /// Lets calls wait up to that long for admission, in the order of their arrival. By default, a call that is denied fails at
    /// once, as does one whose wait would be longer.
    pub fn wait(self, limit: Duration) -> Self {
        self.set(|settings| settings.wait = Some(limit))
    }

    /// Adds a value of each request, which the key shows as `{@name}`. A call without the value is rejected as
    /// [`Unidentified`](crate::RejectionKind::Unidentified).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{Policy, Rule, client};
    ///
    /// struct Account(u64);
    ///
    /// let policy = Policy::builder("partner").rule(Rule::sliding_window(50, Duration::from_secs(1))).build()?;
    /// let pace = client::pace(&policy, "{@account}")?
    ///     .value("account", |request| request.extensions.get::<Account>().map(|account| account.0));
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn value<V: Display>(
        self,
        name: impl Into<Cow<'static, str>>,
        find: impl Fn(&Parts) -> Option<V> + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        let find = move |parts: &Parts| find(parts).map(|value| value.to_string());
        self.set(|settings| {
            settings.values.retain(|(known, _)| *known != name);
            settings.values.push((name, Arc::new(find)));
            settings.note_names();
        })
    }

    /// Sets the cost of a call: 1 by default.
    pub fn cost(self, cost: impl Fn(&Parts) -> u64 + Send + Sync + 'static) -> Self {
        self.set_cost(CALLS, Arc::new(cost))
    }

    /// Sets what a call costs in a unit of the policy: see [`Check::cost_of`](crate::Check::cost_of). `"calls"` names the
    /// [`cost`](Self::cost) of the call itself.
    ///
    /// # Errors
    ///
    /// No rule of the policy counts the unit.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{Policy, Rule, client};
    ///
    /// struct Tokens(u64);
    ///
    /// let minute = Duration::from_secs(60);
    /// let policy = Policy::builder("model")
    ///     .rule(Rule::sliding_window(500, minute))
    ///     .rule(Rule::sliding_window(200_000, minute).counting("tokens"))
    ///     .build()?;
    /// let pace = client::pace(&policy, "{@host}")?
    ///     .cost_of("tokens", |request| request.extensions.get::<Tokens>().map_or(4_000, |tokens| tokens.0))?;
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn cost_of(self, unit: &str, cost: impl Fn(&Parts) -> u64 + Send + Sync + 'static) -> Result<Self, Error> {
        self.settings.keyed.policy.check_counted("cost_of", unit)?;
        Ok(self.set_cost(unit, Arc::new(cost)))
    }

    /// Meters what a call uses of a unit, such as tokens, which an answer says only at its end. The [`Meters`] of a call
    /// are in the extensions of its response. Once the body has ended and the meters are dropped, the call is
    /// [settled](crate::Permit::settle_units) for what was added to them. If nothing was added, it has used nothing of the
    /// unit. A call without a response keeps its [cost](Self::cost_of). `"calls"` names the cost of the call itself.
    ///
    /// # Errors
    ///
    /// No rule of the policy counts the unit.
    pub fn metered(self, unit: &str) -> Result<Self, Error> {
        self.settings.keyed.policy.check_counted("metered", unit)?;
        Ok(self.set(|settings| {
            settings.metered.retain(|known| known != unit);
            settings.metered.push(unit.to_owned());
        }))
    }

    fn set_cost(self, unit: &str, cost: Arc<RequestCost>) -> Self {
        self.set(|settings| {
            settings.costs.retain(|(known, _)| known != unit);
            settings.costs.push((unit.to_owned(), cost));
        })
    }

    /// Sets how responses are read: [`ResponseReader::new`] by default.
    pub fn responses(self, reader: ResponseReader) -> Self {
        self.set(|settings| settings.responses = reader)
    }

    /// Names the rule that counts what the other side counts in fixed windows, so that no more is sent than an answer says is
    /// [left](super::HeardLimit::remaining). That is the rule whose window is that of the answer. If there is none, it is the one
    /// that is named here, and without a name the one of the same count. A policy with several units may name one for each.
    ///
    /// # Errors
    ///
    /// The policy has no rule of that name, the rule is no limit on the subject that can be paused, or no subject of the policy
    /// can be paused.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tallygate::{Policy, Rule, client};
    ///
    /// // The partner admits 5,000, of which this fleet takes 4,500, and its answers say only how many are left until when.
    /// let hourly = Rule::sliding_window(4_500, Duration::from_secs(3_600)).named("hourly");
    /// let policy = Policy::builder("partner").rule(hourly).pausable().build()?;
    /// let pace = client::pace(&policy, "{@host}")?.shared_rule("hourly")?;
    /// # Ok::<(), tallygate::Error>(())
    /// ```
    pub fn shared_rule(self, name: &str) -> Result<Self, Error> {
        check_shared_rule(&self.settings.keyed.policy, name)?;
        Ok(self.set(|settings| settings.shared_rules.push(name.to_owned())))
    }

    fn set(mut self, set: impl FnOnce(&mut PaceSettings)) -> Self {
        set(Arc::make_mut(&mut self.settings));
        self
    }
}

fn check_shared_rule(policy: &Policy, name: &str) -> Result<(), Error> {
    let mistake = |text: &str| Error::new(format!("`shared_rule`: policy `{}` {text}", policy.name()));
    if policy.longest_pause().is_none() {
        return Err(mistake("hears nothing of what is left, as it cannot be paused; make it `pausable`"));
    }
    let names: Vec<&str> = policy.rules().iter().filter_map(Rule::name).collect();
    let Some((position, rule)) = policy.rules().iter().enumerate().find(|(_, rule)| rule.name() == Some(name)) else {
        let remedy = match meant(name, &names) {
            None if names.is_empty() => "give the rule a name with `Rule::named`".to_owned(),
            meant => remedy(meant, "the rules are", &names),
        };
        return Err(mistake(&format!("has no rule `{name}`; {remedy}")));
    };
    if rule.role() != Role::Limit || policy.label(position) != policy.paused_label() {
        let text = format!(
            "counts by `{name}` something else than the calls of the subject that is paused; name a limit on it"
        );
        return Err(mistake(&text));
    }
    Ok(())
}

opaque_debug!(Pace, pace => { policy: pace.settings.keyed.policy.name() });
