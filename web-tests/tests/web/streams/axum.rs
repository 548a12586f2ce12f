//! In axum.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use tallygate::{Limiter, Policy, Rule, web};
use tallygate_harness::server::{Server as Redis, connected, patient};
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Client, Http};

use super::bodies::Bodies;
use super::endings::{Notices, Streaming};

async fn plain(State(bodies): State<Bodies>) -> Body {
    Body::from_stream(bodies.open())
}

/// Returns a limit with the name of its path.
fn limit(limiter: &Limiter, path: &str) -> web::Limit {
    let policy = Policy::builder(path.to_owned()).rule(Rule::concurrency(1, Duration::from_secs(60))).build().unwrap();
    web::limit(&policy, "k").unwrap().limiter(limiter)
}

fn router(limiter: &Limiter, bodies: Bodies) -> Router {
    let refunding = limit(limiter, "/axum/limit/refund").refund_if(|status| status.is_success());
    Router::new()
        .route("/axum/limit", get(plain).layer(limit(limiter, "/axum/limit")))
        .route("/axum/limit/refund", get(plain).layer(refunding))
        .with_state(bodies)
}

const PATHS: [&str; 2] = ["/axum/limit", "/axum/limit/refund"];

async fn each_call_runs_until_its_body_is_over(limiter: Limiter) {
    let (bodies, opened) = Bodies::new();
    let address = serve(router(&limiter, bodies)).await;
    let mut streaming = Streaming { limiter, bodies: opened };
    for http in [Http::One, Http::Two] {
        for path in PATHS {
            streaming.plays_all_endings(&Client::by(http, address), path, Notices::AtOnce).await;
        }
    }
}

#[tokio::test]
async fn a_call_runs_until_its_body_is_over_in_memory() {
    each_call_runs_until_its_body_is_over(Limiter::in_memory()).await;
}

#[tokio::test]
async fn a_call_runs_until_its_body_is_over_in_redis() {
    let redis = Redis::start();
    each_call_runs_until_its_body_is_over(connected(&patient(), &redis.url()).await).await;
}
