//! Answers that are streamed.

use reqwest::Method;
use serde_json::json;
use tallygate_harness::server::Server as Redis;
use tallygate_harness::until::until_found;

use super::{ask, problem, start};

#[tokio::test]
async fn an_answer_is_paid_by_its_tokens_also_if_its_client_goes_away_in_the_middle() {
    let redis = Redis::start();
    let url = redis.url();
    let services = [start(&[]), start(&[("TALLYGATE_URL", &url)])];
    for service in &services {
        let answer = ask(service, "alice", 3).await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert_eq!(answer.text().await.unwrap(), "data: once\n\ndata: upon\n\ndata: a\n\n");

        // More than half of the budget: while it is reserved, there is no second one.
        let mut long = ask(service, "alice", 4_000).await;
        assert!(long.chunk().await.unwrap().unwrap().starts_with(b"data: once\n\n"));
        let (_, second) = problem(ask(service, "alice", 4_000).await).await;
        assert_eq!(
            (&second["kind"], &second["detail"]),
            (&json!("concurrency"), &json!("wait until your other answer is over"))
        );
        assert_eq!(ask(service, "bob", 1).await.status(), 200);

        drop(long);
        until_found("the other answer is over and settled", async || {
            let answer = ask(service, "alice", 4_000).await;
            let status = answer.status().as_u16();
            assert!([200, 429].contains(&status), "{status}");
            status == 200
        })
        .await;
    }
}

#[tokio::test]
async fn who_is_not_signed_in_gets_no_answer() {
    let question = json!({ "text": "tell me a story", "longest": 1 });
    let answer = start(&[]).request(Method::POST, "/answers").json(&question).send().await.unwrap();
    assert_eq!(answer.status(), 401);
}
