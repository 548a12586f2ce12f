//! Limits within contexts of the application's own, without a layer.

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::routing::get;
use tallygate::context::{self, Context};
use tallygate::web;
use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Client, LimitItem};

fn policy() -> Policy {
    Policy::builder("api").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap()
}

/// Serves a limit without a layer, within a context of the application's own.
async fn client(limiter: &Limiter, own: Context) -> Client {
    // The socket's address is that of a proxy where the application has found out another one.
    let exempt: &[&str] = if own.get("ip").is_some() { &["127.0.0.0/8"] } else { &[] };
    let limit = web::limit(&policy(), "{@ip}").unwrap().limiter(limiter).exempt_addresses(exempt).unwrap();
    let within = from_fn(move |request: Request, next: Next| context::scope(own.clone(), next.run(request)));
    Client::new(serve(Router::new().route("/", get(|| async { "done" })).layer(limit).layer(within)).await)
}

/// Asks twice, and returns how much remains for the subject after the first request.
async fn remaining_after_one(limiter: &Limiter, own: Context, subject: &str) -> u64 {
    let client = client(limiter, own).await;
    let answer = client.get("/").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "done"));
    let decision = limiter.peek(&policy(), &Subject::of(subject)).await.unwrap();
    let answer = client.get("/").await;
    assert_eq!((answer.status, answer.problem().violated_policies), (429, vec!["api.1m".to_owned()]));
    assert_eq!(answer.limits(), [LimitItem { name: "api.1m".into(), r: 0, t: answer.retry_after() }]);
    assert_eq!(answer.policies().len(), 1);
    decision.report()[0].remaining()
}

#[tokio::test]
async fn a_limit_finds_the_client_of_the_socket_and_writes_its_fields() {
    let own = Context::new().with("tenant", "a");
    assert_eq!(remaining_after_one(&Limiter::in_memory(), own, "127.0.0.1").await, 0);
}

#[tokio::test]
async fn a_client_that_the_context_knows_is_the_one_that_is_counted() {
    let limiter = Limiter::in_memory();
    let own = Context::new().with("tenant", "a").with("ip", "203.0.113.9");
    assert_eq!(remaining_after_one(&limiter, own, "203.0.113.9").await, 0);
    let decision = limiter.peek(&policy(), &Subject::of("127.0.0.1")).await.unwrap();
    assert_eq!(decision.report()[0].remaining(), 1, "nothing was counted on the socket");
}
