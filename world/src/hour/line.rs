//! The line of a process to a partner: a client as a layer takes it.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use http::{HeaderMap, Request, Response, StatusCode};
use tallygate::__world::in_process;
use tallygate::client::ResponseReader;
use tallygate::web::{self, Layer, LayerService, LimitService};
use tallygate::{Limiter, Policy, Rule};
use tower_layer::Layer as _;
use tower_service::Service;

use super::answers::{Answers, Denied};
use crate::engine::{self, Chance};
use crate::fleet::{Clock, Member};
use crate::partner::Partners;
use crate::workload::{Form, PartnerPlan};

/// What a partner admits in a minute.
pub const COUNT: u64 = 1_000;
/// How long a call takes to the partner at most, and its answer back, in microseconds.
const DELAY_US: u64 = 50_000;

/// How a partner limits the calls.
#[derive(Clone, Debug)]
pub enum PartnerKind {
    /// By sliding windows of its own.
    Sliding,
    /// By fixed windows of its own.
    Fixed,
    /// By our layer for servers, and this rule.
    Ours(Box<Rule>),
}

/// A partner, and the way to it.
pub(super) enum PartnerLine {
    Other(Partners),
    Ours(Box<OwnServer>),
}

/// A server with our layer, in a process of its own.
pub(super) struct OwnServer {
    member: Arc<Member>,
    rule: Box<Rule>,
    service: OnceLock<Option<Served>>,
    chance: Mutex<Chance>,
}

type Served = LayerService<LimitService<Well>>;

/// Answers every request.
#[derive(Clone)]
pub(super) struct Well;

impl Service<Request<String>> for Well {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<String>) -> Self::Future {
        ready(Ok(Response::new(String::new())))
    }
}

impl PartnerLine {
    pub(super) fn new(seed: u64, kind: &PartnerKind) -> Self {
        let plan = |is_fixed| PartnerPlan {
            count: COUNT,
            per_us: 60_000_000,
            is_fixed,
            form: Form::Seconds,
            has_date: false,
            clock: Clock::default(),
            delay_us: DELAY_US,
            loss: 0.0,
            longest_pause_us: 3_600_000_000,
            has_layer: true,
        };
        match kind {
            PartnerKind::Sliding => Self::Other(Partners::new(seed, vec![Some(plan(false))])),
            PartnerKind::Fixed => Self::Other(Partners::new(seed, vec![Some(plan(true))])),
            PartnerKind::Ours(rule) => Self::Ours(Box::new(OwnServer {
                member: Member::start(seed, u32::MAX, Clock::default()),
                rule: rule.clone(),
                service: OnceLock::new(),
                chance: Mutex::new(Chance::new(seed, "the way to our server")),
            })),
        }
    }

    async fn ask(&self, request: Request<String>) -> Response<String> {
        let (status, headers) = match self {
            Self::Other(partners) => match partners.call(0, 0).await {
                Some(answer) => (answer.status, answer.headers),
                None => (StatusCode::BAD_GATEWAY, HeaderMap::new()),
            },
            Self::Ours(server) => server.ask(request).await,
        };
        let mut response = Response::new(String::new());
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        response
    }
}

impl OwnServer {
    async fn ask(&self, request: Request<String>) -> (StatusCode, HeaderMap) {
        let trip = || self.chance.lock().unwrap_or_else(PoisonError::into_inner).between(DELAY_US / 10, DELAY_US);
        engine::sleep(trip()).await;
        let served = in_process(Arc::clone(&self.member) as _, async {
            let service = self.service.get_or_init(|| serve(&self.rule)).clone();
            Some(service?.call(request).await)
        });
        let answer = served.await;
        engine::sleep(trip()).await;
        match answer {
            Some(Ok(response)) => {
                let (parts, _) = response.into_parts();
                (parts.status, parts.headers)
            }
            Some(Err(never)) => match never {},
            None => (StatusCode::BAD_GATEWAY, HeaderMap::new()),
        }
    }
}

fn serve(rule: &Rule) -> Option<Served> {
    let policy = Policy::builder("partner").rule(rule.clone()).build().ok()?;
    let limit = web::limit(&policy, "all").ok()?.limiter(&Limiter::in_memory());
    Some(Layer::new().on_success(true).layer(limit.layer(Well)))
}

/// The line of a process.
#[derive(Clone)]
pub(super) struct Line {
    process: u32,
    partner: Arc<PartnerLine>,
    answers: Answers,
}

impl Line {
    pub(super) fn new(process: u32, partner: Arc<PartnerLine>, answers: Answers) -> Self {
        Self { process, partner, answers }
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process)
    }
}

impl Service<Request<String>> for Line {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        let line = self.clone();
        Box::pin(async move {
            let sent_us = engine::now_us();
            let response = line.partner.ask(request).await;
            if response.status() == StatusCode::TOO_MANY_REQUESTS {
                let heard = ResponseReader::new().read(response.status(), response.headers());
                let said_us = heard.pause().map_or(0, |pause| pause.duration().as_micros());
                let until_us = engine::now_us().saturating_add(u64::try_from(said_us).unwrap_or(u64::MAX));
                line.answers.denied(Denied { process: line.process, sent_us, until_us });
            } else if response.status().is_success() {
                line.answers.admitted();
            }
            Ok(response)
        })
    }
}
