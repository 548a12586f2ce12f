//! The settings of a pace, and a call by them, whatever the client.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use tallygate_rules::{CALLS, Role};

use super::meters::Meters;
use super::traffic::{OnItsWay, Traffic};
use crate::call::CallOptions;
use crate::client::fields::GRPC_STATUS;
use crate::client::heard::REQUESTS;
use crate::client::{Heard, HeardLimit, ResponseReader};
use crate::context::{self, Context, ContextKey, Maker, labels};
use crate::decision::{DecidedBy, Permit, Rejection, RuleStatus, SaidPause};
use crate::field_text::{field_text, host_text};
use crate::limiter::{Check, Limiter};
use crate::observe::{ReportedOnce, log};
use crate::policy::Policy;
use crate::subject::Subject;
use crate::system::TokioInstant;

#[derive(Clone)]
pub(super) struct PaceSettings {
    pub(super) policy: Policy,
    pub(super) key: ContextKey,
    /// The other subjects of the policy, by their labels.
    pub(super) subjects: Vec<(String, ContextKey)>,
    /// Whether the log has reported a subject without a key.
    pub(super) lack_of_keys: Arc<ReportedOnce>,
    /// `None` means the installed limiter.
    pub(super) limiter: Option<Limiter>,
    /// `None` means that a denied call fails at once.
    pub(super) wait: Option<Duration>,
    pub(super) values: Vec<(Cow<'static, str>, Arc<RequestValue>)>,
    /// The names of what the pace looks for in each request, which the contexts share.
    pub(super) names: Arc<[Cow<'static, str>]>,
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

/// A call that is to be paced.
pub(super) struct PacedCall {
    settings: Arc<PaceSettings>,
    check: Check<'static>,
    /// The subject that its answer may pause; `None` if nothing is made of its answer.
    paused: Option<Subject>,
    /// Whether its answer may be asked how much is left.
    may_look: bool,
    /// In the order of the settings.
    costs: Vec<u64>,
}

impl PacedCall {
    /// Prepares a call in the current context.
    pub(super) fn new(settings: &Arc<PaceSettings>, request: &Parts) -> Self {
        let costs: Vec<u64> = settings.costs.iter().map(|(_, cost)| cost(request)).collect();
        let (check, paused, may_look) = settings.check(request, &costs);
        Self { settings: Arc::clone(settings), check, paused, may_look, costs }
    }

    /// Waits for its turn. A request that this program answers meanwhile hears nothing of that: its answer is about other limits.
    pub(super) async fn admit(self) -> Result<AdmittedCall, Rejection> {
        let permit = context::unheard(self.check.admit()).await?;
        let (traffic, now) = (&self.settings.traffic, TokioInstant::now());
        let on_its_way = self.paused.map(|subject| traffic.depart(&subject, now, self.may_look));
        Ok(AdmittedCall {
            settings: self.settings,
            costs: self.costs,
            permit,
            on_its_way,
            is_answered_elsewhere: false,
        })
    }
}

/// A call that is being sent.
pub(super) struct AdmittedCall {
    settings: Arc<PaceSettings>,
    costs: Vec<u64>,
    permit: Option<Permit>,
    /// Until its answer is heard.
    on_its_way: Option<OnItsWay>,
    /// Whether the answer, of which the trailers are still to come, is that of a server to which a redirect has led.
    is_answered_elsewhere: bool,
}

impl AdmittedCall {
    /// Returns what the headers of a response say about limits, and pauses the subject of its call if they say so. Nobody waits
    /// until other processes have heard of that: this one sends nothing more, whatever becomes of it. The call that is tried after a
    /// pause waits, because the others wait for its end.
    pub(super) async fn hear(&mut self, status: StatusCode, headers: &HeaderMap) -> Heard {
        let heard = self.settings.responses.read(status, headers);
        if let Some(arrived) = self.on_its_way.take() {
            let looks = arrived.looks && heard.pause().is_none();
            let on_their_way = arrived.arrive();
            if looks {
                self.leave_less(&heard, on_their_way);
            }
        }
        match self.permit.as_ref().filter(|permit| permit.is_probe()) {
            // After a failure that says no time, the next call is tried: zero neither pauses nor opens. Nor does an answer of gRPC
            // before its trailers have said how the call ended.
            Some(probe) => {
                let unsaid = (heard.has_failed || is_status_due(headers)).then_some(Duration::ZERO.into());
                probe.pause_logged(self.pause_after(&heard).or(unsaid)).await;
            }
            None => self.begin_pause(&heard),
        }
        heard
    }

    /// Hears that the server of the subject has answered by a redirect to another one, which says nothing of the subject.
    pub(super) async fn hear_redirect(&mut self) {
        self.is_answered_elsewhere = true;
        self.hear(StatusCode::FOUND, &HeaderMap::new()).await;
    }

    /// Returns the meters of the call, which has a response. From now on, it is settled for what is added to them.
    pub(super) fn meters(&mut self) -> Option<Meters> {
        Meters::take(self.permit.as_mut()?, &self.settings.metered)
    }

    /// Hears the trailers, too.
    pub(super) fn hear_trailers(&self, trailers: &HeaderMap) {
        if self.is_answered_elsewhere {
            return;
        }
        // The status of HTTP was heard with the headers.
        let heard = self.settings.responses.read(StatusCode::OK, trailers);
        self.begin_pause(&heard);
        let has_succeeded =
            trailers.contains_key(GRPC_STATUS) && !heard.has_failed && self.pause_after(&heard).is_none();
        if let Some(permit) = self.permit.as_ref().filter(|_| has_succeeded) {
            permit.begin_success();
        }
    }

    fn begin_pause(&self, heard: &Heard) {
        if heard.is_denial && self.settings.policy.longest_pause().is_none() {
            log::denial_not_heeded(self.settings.policy.name());
        }
        if let Some((permit, said)) = self.permit.as_ref().zip(self.pause_after(heard)) {
            permit.begin_pause_logged(said);
        }
    }

    /// Leaves no more of a limit than the answer says, if others have used it, too. That is heard only of fixed windows, whose
    /// reset says how long nothing comes back. Of other limits something comes back soon, but nobody says when.
    fn leave_less(&self, heard: &Heard, on_their_way: u64) {
        let Some(permit) = &self.permit else { return };
        // An override may have other rules at these positions.
        let Some(policy) = permit.policy() else { return };
        for limit in heard.limits().iter().filter(|limit| limit.has_fixed_windows()) {
            let Some((remaining, reset)) = limit.remaining().zip(limit.reset()) else { continue };
            let Some(status) = self.rule_of(limit, permit.report(), policy) else {
                if !permit.report().is_empty() {
                    log::limit_of_no_rule(policy.name());
                }
                continue;
            };
            // The other side may count calls that are on their way, or may not yet: it has counted those that overtook this one,
            // and will count the others.
            let unknown = on_their_way.saturating_mul(self.cost_of(limit.unit()).unwrap_or(1));
            // The standby shows its part of the rule, and finds out itself what is left of it.
            let is_part = permit.decided_by() != DecidedBy::Backend;
            if is_part || remaining.saturating_add(unknown) < status.remaining() {
                permit.begin_leaving(status.position(), remaining.saturating_sub(unknown), reset);
            }
        }
    }

    /// Returns the rule that counts what the limit of a server counts: one that counts for as long as the limit says, one that
    /// was named, or, if the limit does not say how long it counts, one of the same count.
    fn rule_of<'a>(&self, limit: &HeardLimit, report: &'a [RuleStatus], policy: &Policy) -> Option<&'a RuleStatus> {
        let alike = || {
            report.iter().filter(|status| {
                let is_of_subject = policy.label(status.position()) == policy.paused_label();
                is_of_subject && status.rule().role() == Role::Limit && is_unit(status.rule().counted(), limit.unit())
            })
        };
        let is_named = |status: &&RuleStatus| {
            status.rule().name().is_some_and(|name| self.settings.shared_rules.iter().any(|shared| shared == name))
        };
        let counts_as_long = |status: &&RuleStatus| limit.window().is_some() && status.rule().per() == limit.window();
        let counts_as_many = |status: &&RuleStatus| limit.window().is_none() && Some(status.limit()) == limit.limit();
        // A partner may have several limits. A name is for those whose window says nothing.
        alike().find(counts_as_long).or_else(|| alike().find(is_named)).or_else(|| alike().find(counts_as_many))
    }

    fn pause_after(&self, heard: &Heard) -> Option<SaidPause> {
        let length = heard.wait_for(|unit| self.cost_of(unit))?;
        Some(SaidPause { length, field: heard.waiting_field() })
    }

    /// Returns what the call costs of a unit, as the server names it: the next one may cost as much.
    fn cost_of(&self, unit: &str) -> Option<u64> {
        let position = self.settings.costs.iter().position(|(name, _)| is_unit(name, unit))?;
        self.costs.get(position).copied()
    }
}

impl PaceSettings {
    /// Returns the check of a call, the subject that may be paused if its policy makes something of the answer, and whether that
    /// may be asked how much is left.
    fn check(&self, request: &Parts, costs: &[u64]) -> (Check<'static>, Option<Subject>, bool) {
        let limiter = self.limiter.as_ref().unwrap_or_else(|| Limiter::installed());
        labels::report_lack_of_keys(&self.lack_of_keys, "client::pace", &self.policy, &self.subjects);
        let (subject, others) = context::enter(&mut self.context(request), || {
            let others = self.subjects.iter().map(|(label, key)| (label, key.subject(limiter.secret())));
            (self.key.subject(limiter.secret()), others.collect::<Vec<_>>())
        });
        let paused = others.iter().find(|(label, _)| self.policy.paused_label() == Some(label.as_str()));
        let paused = paused.map_or(&subject, |(_, other)| other);
        let paused = self.policy.longest_pause().map(|_| paused.clone());
        let may_look = paused.as_ref().is_some_and(|subject| self.traffic.may_look(subject, TokioInstant::now()));
        // A denied call needs no report: it has no answer to compare it with.
        let refundable = may_look || !self.metered.is_empty();
        let options = CallOptions { report: may_look, report_is_optional: may_look, refundable, ..CallOptions::PLAIN };
        let check = Check::new(limiter, &self.policy, &subject, options);
        let mut check = others.iter().fold(check, |check, (label, subject)| check.subject(label, subject));
        for ((unit, _), cost) in self.costs.iter().zip(costs) {
            check = check.cost_of(unit, *cost);
        }
        if let Some(wait) = self.wait {
            check = check.wait(wait);
        }
        (check.into_owned(), paused, may_look)
    }

    /// Returns the names of the values that the keys show.
    fn shown_names(&self) -> impl Iterator<Item = &str> {
        self.subjects.iter().flat_map(|(_, key)| key.names()).chain(self.key.names())
    }

    /// Notes the names of the values that the pace looks for: those that are set, and those of the keys that any request
    /// may have.
    pub(super) fn note_names(&mut self) {
        let of_requests = self.shown_names().filter(|name| is_of_request(name)).map(|name| name.to_owned().into());
        self.names = self.values.iter().map(|(name, _)| name.clone()).chain(of_requests).collect();
    }

    /// Returns the values of the request that the keys show. A value that this request lacks is not that of a request which this
    /// program answers meanwhile.
    fn context(&self, request: &Parts) -> Context {
        let mut context = Context::new().looking_for(&self.names).made_by(Maker::Pace);
        for name in self.shown_names() {
            let own = self.values.iter().find(|(known, _)| known == name);
            let value = match own {
                Some((_, find)) => find(request),
                None if is_of_request(name) => request_value(name, request),
                None => continue,
            };
            context = match value {
                Some(value) => context.with(name.to_owned(), value),
                None => context.without(name.to_owned()),
            };
        }
        context
    }
}

/// Whether a server calls the unit of a policy so.
fn is_unit(name: &str, heard: &str) -> bool {
    match heard {
        REQUESTS => name == CALLS,
        _ => name.replace('_', "-") == heard.replace('_', "-"),
    }
}

/// Whether the answer is one of gRPC whose status is to come in its trailers.
fn is_status_due(headers: &HeaderMap) -> bool {
    let written = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let format = written.and_then(|written| written.strip_prefix(b"application/grpc"));
    // `application/grpc-web` has its trailers in the body.
    let is_grpc = matches!(format, Some([] | [b'+' | b';', ..]));
    is_grpc && !headers.contains_key(GRPC_STATUS)
}

/// Whether any request may have a value of this name.
fn is_of_request(name: &str) -> bool {
    matches!(name, "host" | "method") || name.starts_with("header_")
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
