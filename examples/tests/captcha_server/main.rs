//! The captcha server, run as its users run it and asked over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod process;

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Response, StatusCode, header};
use serde_json::{Value, json};
use tallygate_tests::server::Server as Redis;
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::process::{Server, fail_to_start};

/// How many requests go to each of two servers at once.
const EACH: usize = 32;

/// Sends the same request to all servers at once, and returns how many were admitted; all others were limited.
async fn admitted<F>(servers: &[&Arc<Server>], request: impl Fn(Arc<Server>) -> F) -> usize
where
    F: Future<Output = Response> + Send + 'static,
{
    let mut requests = JoinSet::new();
    for _ in 0..EACH {
        for server in servers {
            requests.spawn(request(Arc::clone(server)));
        }
    }
    let statuses: Vec<_> = requests.join_all().await.iter().map(Response::status).collect();
    let admitted = statuses.iter().filter(|&&status| status == StatusCode::OK).count();
    let limited = statuses.iter().filter(|&&status| status == StatusCode::TOO_MANY_REQUESTS).count();
    assert_eq!(admitted + limited, EACH * servers.len(), "{statuses:?}");
    admitted
}

/// Takes the answer apart: status, whole seconds of `Retry-After`, body.
async fn parts(response: Response) -> (StatusCode, Option<u64>, Value) {
    let retry_after = response.headers().get(header::RETRY_AFTER).map(|seconds| seconds.to_str().unwrap().to_owned());
    let retry_after = retry_after.map(|seconds| seconds.parse().unwrap());
    (response.status(), retry_after, response.json().await.unwrap())
}

/// Takes the time to wait out of a body and compares it with the header; it differs from run to run.
fn take_wait(body: &mut Value, header: Option<u64>) -> u64 {
    let wait_ms = body["retry_after_ms"].take().as_u64().expect("a whole number");
    assert_eq!(header, Some(wait_ms.div_ceil(1_000)));
    wait_ms
}

#[tokio::test]
async fn two_servers_on_one_redis_admit_exactly_count_together() {
    let redis = Redis::start();
    let (one, other) = (Arc::new(Server::start(&redis.url())), Arc::new(Server::start(&redis.url())));
    let both = [&one, &other];
    assert_eq!(admitted(&both, |server| async move { server.report().await }).await, 10);
    assert_eq!(admitted(&both, |server| async move { server.captcha("13800000000").await }).await, 1);
    assert_eq!(admitted(&both, |server| async move { server.captcha("13900000000").await }).await, 1);
}

#[tokio::test]
async fn two_servers_on_their_own_memory_count_apart() {
    let (one, other) = (Arc::new(Server::start_with_defaults()), Arc::new(Server::start("memory://")));
    assert_eq!(admitted(&[&one, &other], |server| async move { server.report().await }).await, 20);
}

#[tokio::test]
async fn a_limited_response_says_which_rule_and_how_long_to_wait() {
    let server = Server::start_with_defaults();
    let admitted = server.captcha("13800000000").await;
    assert_eq!((admitted.status(), admitted.text().await.unwrap().as_str()), (StatusCode::OK, r#"{"sent":true}"#));

    let (status, retry_after, mut body) = parts(server.captcha("13800000000").await).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!((1..=60_000).contains(&take_wait(&mut body, retry_after)));
    assert!(body["message"].take().as_str().unwrap().starts_with("too many requests: at most 1 per 1m; try again in "));
    let rule = json!({ "index": 0, "count": 1, "per_ms": 60_000 });
    let expected =
        json!({ "kind": "limited", "message": null, "policy": "captcha", "rule": rule, "retry_after_ms": null });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_second_click_is_a_duplicate() {
    let redis = Redis::start();
    let (one, other) = (Server::start(&redis.url()), Server::start(&redis.url()));
    assert_eq!(one.lottery("alice").await.status(), StatusCode::OK);

    let (status, retry_after, mut body) = parts(other.lottery("alice").await).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!((1..=5_000).contains(&take_wait(&mut body, retry_after)));
    assert_eq!(
        (&body["kind"], &body["policy"], &body["rule"]["count"]),
        (&json!("duplicate"), &json!("lottery"), &json!(1))
    );
    assert_eq!(other.lottery("bob").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_request_is_unavailable_while_redis_is_away_and_served_when_it_is_back() {
    let mut redis = Redis::start();
    let server = Server::start(&redis.url());
    redis.kill();
    let (status, retry_after, body) = parts(server.report().await).await;
    assert_eq!((status, retry_after), (StatusCode::SERVICE_UNAVAILABLE, None));
    let message = "the rate limit cannot be checked right now; try again later";
    let expected = json!({
        "kind": "unavailable", "message": message, "policy": "report", "rule": null, "retry_after_ms": null
    });
    assert_eq!(body, expected);

    redis.restart();
    let recovery = async { while server.report().await.status() != StatusCode::OK {} };
    timeout(Duration::from_secs(30), recovery).await.expect("the server recovers by itself");
}

#[tokio::test]
async fn the_report_says_what_was_done_and_not_what_was_refused() {
    let server = Server::start_with_defaults();
    assert_eq!(server.captcha("13800000000").await.status(), StatusCode::OK);
    assert_eq!(server.captcha("13800000000").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(server.captcha("no phone").await.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(server.lottery("alice").await.status(), StatusCode::OK);
    assert_eq!(parts(server.report().await).await.2, json!({ "codes": 1, "draws": 1 }));
}

#[tokio::test]
async fn a_server_that_is_asked_to_stop_ends_well() {
    let server = Server::start_with_defaults();
    assert_eq!(server.report().await.status(), StatusCode::OK);
    assert!(server.stop().success());
}

#[test]
fn a_server_that_cannot_reach_its_tallies_does_not_start() {
    let port = tallygate_tests::server::free_port();
    for url in ["reddis://127.0.0.1".to_owned(), format!("redis://127.0.0.1:{port}")] {
        let output = fail_to_start(&url);
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("`url`"), "{output:?}");
    }
}
