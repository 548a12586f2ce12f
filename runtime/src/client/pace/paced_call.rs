//! A call that is paced: it waits for its turn, is sent, and hears what its answer says, to the end of the body.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tallygate_rules::{CALLS, Role};

use super::settings::{PaceSettings, PacedRequest};
use super::traffic::{Departure, OnItsWay};
use crate::call::CallOptions;
use crate::client::fields::GRPC_STATUS;
use crate::client::heard::REQUESTS;
use crate::client::{Heard, HeardLimit};
use crate::context;
use crate::decision::{DecidedBy, Meter, Permit, Rejection, RuleStatus, SaidPause};
use crate::limiter::Check;
use crate::observe::{log, opaque_debug};
use crate::policy::Policy;
use crate::subject::Subject;
use crate::system::TokioInstant;

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

/// The meters of a paced call, by the units of [`Pace::metered`](super::Pace::metered). They are in the extensions of its response.
///
/// # Examples
///
/// ```
/// use tallygate::client::Meters;
///
/// /// The answer of a model says in its body how many tokens the call has used.
/// fn count<B>(response: &http::Response<B>, tokens: u64) {
///     if let Some(meter) = response.extensions().get::<Meters>().and_then(|meters| meters.get("tokens")) {
///         meter.add(tokens);
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Meters(Vec<(String, Meter)>);

impl Meters {
    /// Takes the meters of a call for those of these units that can be settled; `None` if none can.
    pub(super) fn take(permit: &mut Permit, units: &[String]) -> Option<Self> {
        let meters: Vec<_> = units.iter().filter_map(|unit| Some((unit.clone(), permit.meter(unit).ok()?))).collect();
        (!meters.is_empty()).then_some(Self(meters))
    }

    /// Returns the meter of a unit; `None` if the pace does not meter it, or if the call has a cost of 0 in calls.
    #[must_use]
    pub fn get(&self, unit: &str) -> Option<&Meter> {
        self.0.iter().find(|(known, _)| known == unit).map(|(_, meter)| meter)
    }
}

pin_project! {
    /// The body of a response to a paced call. Where concurrent calls are counted, the call is running until the body ends or
    /// fails, or is dropped.
    #[must_use = "the call ends when its body is dropped"]
    pub struct PacedBody<B> {
        #[pin]
        body: B,
        call: Option<AdmittedCall>,
    }
}

impl<B: Body> PacedBody<B> {
    /// The call has ended if the body has: nobody may ever poll an empty one.
    pub(super) fn new(body: B, call: AdmittedCall, version: Version) -> Self {
        let lasts = !body.is_end_stream() && call.lasts(version, body.size_hint().exact());
        Self { body, call: lasts.then_some(call) }
    }
}

impl<B: Body> Body for PacedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let polled = this.body.as_mut().poll_frame(cx);
        let trailers = match &polled {
            Poll::Ready(Some(Ok(frame))) => frame.trailers_ref(),
            _ => None,
        };
        if let Some((call, trailers)) = this.call.as_ref().zip(trailers) {
            call.hear_trailers(trailers);
        }
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) || this.body.is_end_stream() {
            *this.call = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

opaque_debug!([B] PacedBody<B>);
