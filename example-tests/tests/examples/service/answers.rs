//! Answers that are streamed.

use reqwest::{Method, Response};
use serde_json::json;
use tallygate_harness::server::Server as Redis;
use tallygate_harness::until::until_found;

use super::{ask, problem, start};
use crate::process::Service;

/// Begins an answer as soon as the one before is over and settled, which Redis hears a moment after the client.
async fn ask_next(service: &Service, user: &str, longest: u32) -> Response {
    let mut next = None;
    until_found("the answer before is over and settled", async || {
        let answer = ask(service, user, longest).await;
        let is_denied = answer.status() == 429;
        next = Some(answer);
        !is_denied
    })
    .await;
    let next = next.expect("it was asked");
    assert_eq!(next.status(), 200);
    next
}

#[tokio::test]
async fn an_answer_is_paid_by_its_tokens_also_if_its_client_goes_away_in_the_middle() {
    let redis = Redis::start();
    let url = redis.url();
    let services = [start(&[]), start(&[("TALLYGATE_URL", &url)])];
    for service in &services {
        let answer = ask(service, "alice", 3).await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert_eq!(answer.text().await.unwrap(), "data: once\n\ndata: upon\n\ndata: a\n\n");

        // More than half of the budget. While it runs, there is no second one, however short.
        let mut long = ask_next(service, "alice", 4_000).await;
        assert_eq!(long.chunk().await.unwrap().unwrap(), "data: once\n\n");
        let (_, second) = problem(ask(service, "alice", 900).await).await;
        assert_eq!(
            (&second["kind"], &second["detail"]),
            (&json!("concurrency"), &json!("wait until your other answer is over"))
        );
        assert_eq!(ask(service, "bob", 1).await.status(), 200);

        drop(long);
        ask_next(service, "alice", 4_000).await;
    }
}

#[tokio::test]
async fn who_is_not_signed_in_gets_no_answer() {
    let question = json!({ "text": "tell me a story", "longest": 1 });
    let answer = start(&[]).request(Method::POST, "/answers").json(&question).send().await.unwrap();
    assert_eq!(answer.status(), 401);
}
