//! In axum.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::StreamExt as _;
use tallygate::{FromRejection, HoldPermit, Limiter, Permit, Policy, Rejection, Rule, Subject, rate_limit, web};
use tallygate_harness::server::{Server as Redis, connected, patient};
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Client, Http};

use super::bodies::Bodies;
use super::endings::{Notices, Streaming};

#[derive(Clone)]
struct Service {
    limiter: Limiter,
    bodies: Bodies,
    /// The policy that is checked by hand.
    by_hand: Policy,
    metered: Policy,
}

impl Service {
    fn new(limiter: Limiter, bodies: Bodies) -> Self {
        Self { limiter, bodies, by_hand: policy("/axum/hand"), metered: metered_policy("/axum/metered") }
    }

    fn body(&self) -> Body {
        Body::from_stream(self.bodies.open())
    }
}

async fn plain(State(service): State<Service>) -> Body {
    service.body()
}

#[rate_limit(
    name = "/axum/response",
    key = "k",
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter
)]
async fn response(State(service): State<Service>) -> Response {
    service.body().into_response()
}

#[rate_limit(
    name = "/axum/result",
    key = "k",
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter
)]
async fn result(State(service): State<Service>) -> Result<Response, Rejection> {
    Ok(service.body().into_response())
}

#[rate_limit(
    name = "/axum/any",
    key = "k",
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter
)]
async fn any(State(service): State<Service>) -> impl IntoResponse {
    ([("x-mine", "yes")], service.body())
}

#[rate_limit(
    name = "/axum/any/result",
    key = "k",
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter
)]
async fn any_in_result(State(service): State<Service>) -> Result<impl IntoResponse, Rejection> {
    Ok(([("x-mine", "yes")], service.body()))
}

#[rate_limit(
    name = "/axum/any/reject",
    key = "k",
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter,
    reject = Rejection::into_response
)]
async fn any_with_its_own_rejection(State(service): State<Service>) -> impl IntoResponse {
    service.body().into_response()
}

#[rate_limit(
    name = "/axum/any/result/reject",
    key = "k",
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter,
    reject = Err
)]
async fn any_in_result_with_its_own_rejection(State(service): State<Service>) -> Result<impl IntoResponse, Rejection> {
    Ok(service.body())
}

#[rate_limit(
    name = "/axum/future",
    key = "k",
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter
)]
fn future(State(service): State<Service>) -> impl Future<Output = impl IntoResponse> + Send {
    async move { service.body() }
}

/// A refund gives back what was counted, while the call goes on.
#[rate_limit(
    name = "/axum/refund",
    key = "k",
    rule(count = 1, per = "1h"),
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter,
    refund_if = |response| response.status().is_success()
)]
async fn refunded(State(service): State<Service>) -> Response {
    service.body().into_response()
}

#[rate_limit(
    name = "/axum/own",
    key = "k",
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter
)]
async fn own(State(service): State<Service>) -> Page {
    Page { response: service.body().into_response() }
}

struct Page {
    response: Response,
}

impl HoldPermit for Page {
    fn hold_permit(self, permit: Permit) -> Self {
        Self { response: self.response.hold_permit(permit) }
    }
}

impl FromRejection for Page {
    fn from_rejection(rejection: Rejection) -> Self {
        Self { response: rejection.into_response() }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        self.response
    }
}

#[rate_limit(until = "body", concurrency(limit = 1, lease = "1m"), limiter = service.limiter)]
async fn whole(State(service): State<Service>) -> Result<Response, Rejection> {
    let _ = service;
    Ok("all of it".into_response())
}

async fn by_hand(State(service): State<Service>) -> Result<Response, Rejection> {
    let permit = service.limiter.check(&service.by_hand, &Subject::of("k")).await?.into_result()?;
    Ok(service.body().into_response().hold_permit(permit))
}

async fn metered(State(service): State<Service>) -> Result<Response, Rejection> {
    let subject = Subject::of("k");
    let check = service.limiter.check(&service.metered, &subject).cost(100).refundable();
    let mut permit = check.await?.into_result()?;
    let used = permit.meter("calls")?;
    let body = Body::from_stream(service.bodies.open().inspect(move |_| used.add(1)));
    Ok(body.into_response().hold_permit(permit))
}

#[rate_limit(
    name = "/axum/unit",
    key = "k",
    until = "body",
    unit("tokens", cost = 100, settle = metered),
    rule(count = 1_000, per = "1h", unit = "tokens"),
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter
)]
async fn metered_unit(State(service): State<Service>) -> Result<impl IntoResponse, Rejection> {
    let tokens = tallygate::meter("tokens")?;
    Ok(Body::from_stream(service.bodies.open().inspect(move |_| tokens.add(1))))
}

/// Answers at once, and leaves the work to a task.
#[rate_limit(
    name = "/axum/task",
    key = "k",
    unit("tokens", cost = 100, settle = metered),
    rule(count = 1_000, per = "1h", unit = "tokens"),
    limiter = service.limiter
)]
async fn metered_task(State(service): State<Service>) -> Result<StatusCode, Rejection> {
    let tokens = tallygate::meter("tokens")?;
    let pieces = service.bodies.open();
    tokio::spawn(pieces.for_each(move |_| {
        tokens.add(1);
        std::future::ready(())
    }));
    Ok(StatusCode::ACCEPTED)
}

fn metered_policy(path: &str) -> Policy {
    let rules =
        [Rule::sliding_window(1_000, Duration::from_secs(3_600)), Rule::concurrency(1, Duration::from_secs(60))];
    Policy::builder(path.to_owned()).rules(rules).build().unwrap()
}

/// Returns a policy with the name of its path.
fn policy(path: &str) -> Policy {
    Policy::builder(path.to_owned()).rule(Rule::concurrency(1, Duration::from_secs(60))).build().unwrap()
}

fn limit(limiter: &Limiter, path: &str) -> web::Limit {
    web::limit(&policy(path), "k").unwrap().limiter(limiter)
}

const PATHS: [&str; 12] = [
    "/axum/limit",
    "/axum/limit/refund",
    "/axum/response",
    "/axum/result",
    "/axum/any",
    "/axum/any/result",
    "/axum/any/reject",
    "/axum/any/result/reject",
    "/axum/future",
    "/axum/refund",
    "/axum/own",
    "/axum/hand",
];

fn router(service: Service) -> Router {
    let limit = |path| limit(&service.limiter, path);
    let refunding = limit("/axum/limit/refund").refund_if(|status| status.is_success());
    Router::new()
        .route("/axum/limit", get(plain).layer(limit("/axum/limit")))
        .route("/axum/limit/refund", get(plain).layer(refunding))
        .route("/axum/response", get(response))
        .route("/axum/result", get(result))
        .route("/axum/any", get(any))
        .route("/axum/any/result", get(any_in_result))
        .route("/axum/any/reject", get(any_with_its_own_rejection))
        .route("/axum/any/result/reject", get(any_in_result_with_its_own_rejection))
        .route("/axum/future", get(future))
        .route("/axum/refund", get(refunded))
        .route("/axum/own", get(own))
        .route("/axum/whole", get(whole))
        .route("/axum/hand", get(by_hand))
        .route("/axum/metered", get(metered))
        .route("/axum/unit", get(metered_unit))
        .route("/axum/task", get(metered_task))
        .with_state(service)
}

async fn each_call_lasts_as_long_as_its_body(limiter: Limiter) {
    let (bodies, opened) = Bodies::new();
    let address = serve(router(Service::new(limiter.clone(), bodies))).await;
    let mut streaming = Streaming { limiter, bodies: opened };
    for http in [Http::One, Http::Two] {
        for path in PATHS {
            streaming.plays_all_endings(&Client::by(http, address), path, Notices::AtOnce).await;
        }
    }
    let client = Client::new(address);
    for path in ["/axum/metered", "/axum/unit"] {
        streaming.settles_for_its_pieces(&client, path).await;
    }
    streaming.settles_for_its_task(&client, "/axum/task").await;
}

#[tokio::test]
async fn a_body_that_holds_a_permit_keeps_its_length_in_memory() {
    let (limiter, (bodies, _opened)) = (Limiter::in_memory(), Bodies::new());
    let client = Client::new(serve(router(Service::new(limiter, bodies))).await);
    let answer = client.get("/axum/whole").await;
    assert_eq!((answer.header("content-length"), answer.body.as_str()), (Some("9"), "all of it"));
}

#[tokio::test]
async fn a_call_runs_until_its_body_is_over_and_is_settled_then_in_memory() {
    each_call_lasts_as_long_as_its_body(Limiter::in_memory()).await;
}

#[tokio::test]
async fn a_call_runs_until_its_body_is_over_and_is_settled_then_in_redis() {
    let redis = Redis::start();
    each_call_lasts_as_long_as_its_body(connected(&patient(), &redis.url()).await).await;
}
