//! In actix-web.

use std::net::SocketAddr;
use std::time::Duration;

use actix_web::web::{Data, ServiceConfig, get, resource};
use actix_web::{App, HttpResponse, HttpServer, Responder};
use futures_util::StreamExt as _;
use tallygate::{HoldPermit, Limiter, Policy, Rejection, Rule, Subject, rate_limit, web};
use tallygate_harness::server::{Server as Redis, connected, patient};
use tallygate_web_tests::{Client, Http};

use super::bodies::Bodies;
use super::endings::{Notices, Streaming};
use crate::actix::run;

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
        Self { limiter, bodies, by_hand: policy("/actix/hand"), metered: metered_policy("/actix/metered") }
    }

    fn response(&self) -> HttpResponse {
        HttpResponse::Ok().streaming(self.bodies.open())
    }
}

async fn plain(service: Data<Service>) -> HttpResponse {
    service.response()
}

#[rate_limit(
    name = "/actix/response",
    key = "k",
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter
)]
async fn response(service: Data<Service>) -> HttpResponse {
    service.response()
}

#[rate_limit(
    name = "/actix/result",
    key = "k",
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter
)]
async fn result(service: Data<Service>) -> actix_web::Result<HttpResponse> {
    Ok(service.response())
}

#[rate_limit(
    name = "/actix/any",
    key = "k",
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter
)]
async fn any(service: Data<Service>) -> impl Responder {
    service.response().customize().insert_header(("x-mine", "yes"))
}

#[rate_limit(
    name = "/actix/any/result",
    key = "k",
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter
)]
async fn any_in_result(service: Data<Service>) -> Result<impl Responder, Rejection> {
    Ok(service.response().customize())
}

/// A refund gives back what was counted, while the call goes on.
#[rate_limit(
    name = "/actix/refund",
    key = "k",
    rule(count = 1, per = "1h"),
    until = "body",
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter,
    refund_if = |response| response.status().is_success()
)]
async fn refunded(service: Data<Service>) -> HttpResponse {
    service.response()
}

#[rate_limit(until = "body", concurrency(limit = 1, lease = "1m"), limiter = service.limiter)]
async fn whole(service: Data<Service>) -> Result<HttpResponse, Rejection> {
    let _ = service;
    Ok(HttpResponse::Ok().body("all of it"))
}

async fn by_hand(service: Data<Service>) -> Result<HttpResponse, Rejection> {
    let permit = service.limiter.check(&service.by_hand, &Subject::of("k")).await?.into_result()?;
    Ok(service.response().hold_permit(permit))
}

async fn metered(service: Data<Service>) -> Result<HttpResponse, Rejection> {
    let subject = Subject::of("k");
    let check = service.limiter.check(&service.metered, &subject).cost(100).refundable();
    let mut permit = check.await?.into_result()?;
    let used = permit.meter("calls")?;
    let body = service.bodies.open().inspect(move |_| used.add(1));
    Ok(HttpResponse::Ok().streaming(body).hold_permit(permit))
}

#[rate_limit(
    name = "/actix/unit",
    key = "k",
    until = "body",
    unit("tokens", cost = 100, settle = metered),
    rule(count = 1_000, per = "1h", unit = "tokens"),
    concurrency(limit = 1, lease = "1m"),
    limiter = service.limiter
)]
async fn metered_unit(service: Data<Service>) -> Result<HttpResponse, Rejection> {
    let tokens = tallygate::meter("tokens")?;
    Ok(HttpResponse::Ok().streaming(service.bodies.open().inspect(move |_| tokens.add(1))))
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

const PATHS: [&str; 8] = [
    "/actix/limit",
    "/actix/limit/refund",
    "/actix/response",
    "/actix/result",
    "/actix/any",
    "/actix/any/result",
    "/actix/refund",
    "/actix/hand",
];

fn routes(config: &mut ServiceConfig, limiter: &Limiter) {
    let limit = |path: &str| web::limit(&policy(path), "k").unwrap().limiter(limiter);
    let refunding = limit("/actix/limit/refund").refund_if(|status| status.is_success());
    config
        .service(resource("/actix/limit").wrap(limit("/actix/limit")).route(get().to(plain)))
        .service(resource("/actix/limit/refund").wrap(refunding).route(get().to(plain)))
        .route("/actix/response", get().to(response))
        .route("/actix/result", get().to(result))
        .route("/actix/any", get().to(any))
        .route("/actix/any/result", get().to(any_in_result))
        .route("/actix/refund", get().to(refunded))
        .route("/actix/whole", get().to(whole))
        .route("/actix/hand", get().to(by_hand))
        .route("/actix/metered", get().to(metered))
        .route("/actix/unit", get().to(metered_unit));
}

/// Serves to clients that may close their half of the connection, or not.
async fn serve(service: Service, half_closed: bool) -> SocketAddr {
    run(move || {
        let server = HttpServer::new(move || {
            App::new().app_data(Data::new(service.clone())).configure(|config| routes(config, &service.limiter))
        });
        let server = server.workers(1).disable_signals().h1_allow_half_closed(half_closed);
        let server = server.bind_auto_h2c("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    })
    .await
}

async fn each_call_lasts_as_long_as_its_body(limiter: Limiter) {
    let (bodies, opened) = Bodies::new();
    let mut streaming = Streaming { limiter: limiter.clone(), bodies: opened };
    let service = Service::new(limiter, bodies);
    for (half_closed, http, notices) in [
        (false, Http::One, Notices::AtOnce),
        (true, Http::One, Notices::WithTheNextPiece),
        (true, Http::Two, Notices::WithTheNextPiece),
    ] {
        let client = Client::by(http, serve(service.clone(), half_closed).await);
        for path in PATHS {
            streaming.plays_all_endings(&client, path, notices).await;
        }
    }
    let client = Client::new(serve(service, false).await);
    for path in ["/actix/metered", "/actix/unit"] {
        streaming.settles_for_its_pieces(&client, path).await;
    }
}

#[tokio::test]
async fn a_body_that_holds_a_permit_keeps_its_length_in_memory() {
    let (limiter, (bodies, _opened)) = (Limiter::in_memory(), Bodies::new());
    let client = Client::new(serve(Service::new(limiter, bodies), true).await);
    let answer = client.get("/actix/whole").await;
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
