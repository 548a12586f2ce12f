//! In actix-web.

use std::time::Duration;

use actix_web::web::{Data, get, scope};
use actix_web::{App, HttpResponse, HttpServer};
use tallygate::{Limiter, Policy, Rule, web};
use tallygate_harness::server::{Server as Redis, connected, patient};
use tallygate_web_tests::{Client, Http};

use super::bodies::Bodies;
use super::endings::{Notices, Streaming};
use crate::actix::run;

async fn plain(bodies: Data<Bodies>) -> HttpResponse {
    HttpResponse::Ok().streaming(bodies.open())
}

/// Returns a limit with the name of its path.
fn limit(limiter: &Limiter, path: &str) -> web::Limit {
    let policy = Policy::builder(path.to_owned()).rule(Rule::concurrency(1, Duration::from_secs(60))).build().unwrap();
    web::limit(&policy, "k").unwrap().limiter(limiter)
}

/// Serves to clients that may close their half of the connection, or not.
async fn serve(limiter: Limiter, bodies: Bodies, half_closed: bool) -> std::net::SocketAddr {
    run(move || {
        let server = HttpServer::new(move || {
            let refunding = limit(&limiter, "/actix/limit/refund").refund_if(|status| status.is_success());
            let refunding = scope("/actix/limit/refund").wrap(refunding).route("", get().to(plain));
            let held = scope("/actix/limit").wrap(limit(&limiter, "/actix/limit")).route("", get().to(plain));
            App::new().app_data(Data::new(bodies.clone())).service(refunding).service(held)
        });
        let server = server.workers(1).disable_signals().h1_allow_half_closed(half_closed);
        let server = server.bind_auto_h2c("127.0.0.1:0").unwrap();
        (server.addrs()[0], server.run())
    })
    .await
}

const PATHS: [&str; 2] = ["/actix/limit", "/actix/limit/refund"];

async fn each_call_runs_until_its_body_is_over(limiter: Limiter) {
    let (bodies, opened) = Bodies::new();
    let mut streaming = Streaming { limiter: limiter.clone(), bodies: opened };
    for (half_closed, http, notices) in [
        (false, Http::One, Notices::AtOnce),
        (true, Http::One, Notices::WithTheNextPiece),
        (true, Http::Two, Notices::WithTheNextPiece),
    ] {
        let client = Client::by(http, serve(limiter.clone(), bodies.clone(), half_closed).await);
        for path in PATHS {
            streaming.plays_all_endings(&client, path, notices).await;
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
