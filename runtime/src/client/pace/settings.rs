//! The settings of a pace, and a call by them, whatever the client.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, Version};
use tallygate_rules::{CALLS, Role};

use super::meters::Meters;
use super::paced_request::PacedRequest;
use super::traffic::{Departure, OnItsWay, Traffic};
use crate::call::CallOptions;
use crate::client::fields::GRPC_STATUS;
use crate::client::heard::REQUESTS;
use crate::client::{Heard, HeardLimit, ResponseReader};
use crate::context::{self, KeyedPolicy};
use crate::decision::{DecidedBy, Permit, Rejection, RuleStatus, SaidPause};
use crate::limiter::{Check, Limiter};
use crate::observe::log;
use crate::policy::Policy;
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

/// A call that is to be paced.
pub(super) struct PacedCall {
    settings: Arc<PaceSettings>,
    subject: Subject,
    /// In the order of the settings.
    others: Vec<Subject>,
    options: CallOptions,
    /// `None` if nothing is made of its answer.
    departure: Option<Departure>,
    /// In the order of the settings.
    costs: Vec<u64>,
}

impl PacedCall {
    /// Prepares a call in the current context.
    pub(super) fn new(settings: &Arc<PaceSettings>, request: &PacedRequest<'_>) -> Self {
        settings.keyed.report_lack_of_keys();
        let costs = settings.costs.iter().map(|(_, cost)| cost(request.parts)).collect();
        let (subject, others) = settings.subjects(request);
        let departure = settings.departure(&subject, &others);
        // A denied call needs no report: it has no answer to compare it with.
        let may_look = departure.as_ref().is_some_and(|departure| departure.may_look);
        let refundable = may_look || !settings.metered.is_empty();
        let options = CallOptions { report: may_look, report_is_optional: may_look, refundable, ..CallOptions::PLAIN };
        Self { settings: Arc::clone(settings), subject, others, options, departure, costs }
    }

    /// Waits for its turn. The context of a request that this program answers does not record the decision, which is about
    /// another limit.
    pub(super) async fn admit(self) -> Result<AdmittedCall, Rejection> {
        let permit = context::unheard(self.check().admit()).await?;
        let on_its_way = self.departure.map(|departure| departure.depart(TokioInstant::now()));
        Ok(AdmittedCall {
            settings: self.settings,
            costs: self.costs,
            permit,
            on_its_way,
            is_answered_elsewhere: false,
        })
    }

    fn check(&self) -> Check<'_> {
        let settings = &*self.settings;
        let mut check = Check::new(settings.limiter(), &settings.keyed.policy, &self.subject, self.options);
        for ((label, _), subject) in settings.keyed.others.iter().zip(&self.others) {
            check = check.subject(label, subject);
        }
        for ((unit, _), cost) in settings.costs.iter().zip(&self.costs) {
            check = check.cost_of(unit, *cost);
        }
        match settings.wait {
            Some(wait) => check.wait(wait),
            None => check,
        }
    }
}

/// A call that is being sent.
pub(super) struct AdmittedCall {
    settings: Arc<PaceSettings>,
    costs: Vec<u64>,
    permit: Permit,
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
        if self.permit.is_probe() {
            // After a failure that says no time, the next call is tried: zero neither pauses nor opens. Nor does an answer of gRPC
            // before its trailers have said how the call ended.
            let unsaid = (heard.has_failed || is_status_due(headers)).then_some(Duration::ZERO.into());
            self.permit.pause_logged(self.pause_after(&heard).or(unsaid)).await;
        } else {
            self.begin_pause(&heard);
        }
        heard
    }

    /// Hears that the server of the subject has answered by a redirect to another one, which says nothing of the subject.
    pub(super) async fn hear_redirect(&mut self) {
        self.is_answered_elsewhere = true;
        self.hear(StatusCode::FOUND, &HeaderMap::new()).await;
    }

    /// Whether the call lasts until the body of its response ends: something ends with it, or trailers may come. A body of HTTP/1
    /// whose length is known has none.
    pub(super) fn lasts(&self, version: Version, length: Option<u64>) -> bool {
        let may_have_trailers = version > Version::HTTP_11 || length.is_none();
        may_have_trailers || self.permit.is_of_running_call()
    }

    /// Returns the meters of the call, which has a response. From now on, it is settled for what is added to them.
    pub(super) fn meters(&mut self) -> Option<Meters> {
        Meters::take(&mut self.permit, &self.settings.metered)
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
        if has_succeeded {
            self.permit.begin_success();
        }
    }

    fn begin_pause(&self, heard: &Heard) {
        if heard.is_denial && self.settings.keyed.policy.longest_pause().is_none() {
            log::denial_not_heeded(self.settings.keyed.policy.name());
        }
        if let Some(said) = self.pause_after(heard) {
            self.permit.begin_pause_logged(said);
        }
    }

    /// Leaves no more of a limit than the answer says, if others have used it, too. That is heard only of fixed windows, whose
    /// reset says how long nothing comes back. Of other limits something comes back soon, but nobody says when.
    fn leave_less(&self, heard: &Heard, on_their_way: u64) {
        let permit = &self.permit;
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
            // Calls on their way may be in the number of the other side, or not: they are taken as not in it.
            let unknown = on_their_way.saturating_mul(self.cost_of(limit.unit()).unwrap_or(1));
            // The standby shows its part of the rule, and finds out itself what is left of it.
            let is_part = permit.decided_by() != DecidedBy::Backend;
            if is_part || remaining.saturating_add(unknown) < status.remaining() {
                permit.begin_leaving(status.position(), remaining.saturating_sub(unknown), reset);
            }
        }
    }

    /// Returns the rule that counts what a limit of the other side counts: the one of the same window; else the one that
    /// was named; else, if the limit names no window, the one of the same count.
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
    pub(super) fn limiter(&self) -> &Limiter {
        self.limiter.as_ref().unwrap_or_else(|| Limiter::installed())
    }

    /// Whether functions of the program look at the parts of a request.
    #[cfg(feature = "client-reqwest")]
    pub(super) fn looks_at_parts(&self) -> bool {
        !self.values.is_empty() || !self.costs.is_empty()
    }

    /// Returns the place of a call in the traffic of the subject that may be paused, if the policy makes something of its answer.
    fn departure(&self, subject: &Subject, others: &[Subject]) -> Option<Departure> {
        let KeyedPolicy { policy, others: keys, .. } = &self.keyed;
        policy.longest_pause()?;
        let paused = policy.paused_label();
        let position = keys.iter().position(|(label, _)| Some(label.as_str()) == paused);
        let paused = position.and_then(|position| others.get(position)).unwrap_or(subject);
        Some(self.traffic.prepare(paused, TokioInstant::now()))
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
