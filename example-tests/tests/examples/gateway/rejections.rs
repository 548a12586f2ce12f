//! What a client sees of a limit.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::{ask, error, field, read, start};

/// Takes an error apart that says too much of what was used: its type, and its message before the time to wait.
async fn too_much(answer: Response) -> (String, String) {
    let seconds = answer.headers()["retry-after"].to_str().unwrap().to_owned();
    let error = error(answer, 429).await;
    assert_eq!((&error["code"], &error["param"]), (&json!("rate_limit_exceeded"), &Value::Null));
    let [kind, message] = ["type", "message"].map(|member| error[member].as_str().unwrap().to_owned());
    let wait = if seconds == "60" { "1m".to_owned() } else { format!("{seconds}s") };
    let message = message.strip_suffix(&wait).unwrap_or_else(|| panic!("{message}: {wait}"));
    (kind, message.to_owned())
}

#[tokio::test]
async fn a_user_has_the_requests_and_the_tokens_of_the_plan() {
    let gateway = start("memory://");
    for _ in 0..3 {
        assert_eq!(read(ask(&gateway, "alice", 1, 10).await).await, 1);
    }
    let denied = ask(&gateway, "alice", 1, 10).await;
    assert_eq!([field(&denied, "limit-requests"), field(&denied, "remaining-requests")], [3, 0]);
    assert_eq!(field(&denied, "remaining-tokens"), 10_000 - 3 * 2);
    assert_eq!(
        too_much(denied).await,
        ("requests".to_owned(), "your plan has 3 requests in 1m; next try: ".to_owned())
    );

    assert_eq!(read(ask(&gateway, "bob", 25_000, 1).await).await, 1);
    assert_eq!(read(ask(&gateway, "bob", 25_000, 1).await).await, 1);
    let denied = ask(&gateway, "bob", 1, 10_000).await;
    assert_eq!([field(&denied, "limit-tokens"), field(&denied, "remaining-tokens")], [60_000, 60_000 - 2 * 25_001]);
    assert_eq!(field(&denied, "remaining-requests"), 18);
    assert_eq!(
        too_much(denied).await,
        ("tokens".to_owned(), "your plan has 60,000 tokens in 1m; next try: ".to_owned())
    );
    assert_eq!(read(ask(&gateway, "bob", 1, 1_000).await).await, 1);
}

#[tokio::test]
async fn an_organisation_has_requests_and_tokens_for_all_of_its_users() {
    let gateway = start("memory://");
    assert_eq!(read(ask(&gateway, "bob", 50_000, 1).await).await, 1);
    let denied = ask(&gateway, "carol", 1, 50_000).await;
    assert_eq!([field(&denied, "limit-tokens"), field(&denied, "remaining-tokens")], [100_000, 49_999]);
    assert_eq!(too_much(denied).await, ("tokens".to_owned(), "acme has 100,000 tokens in 1m; next try: ".to_owned()));
    assert_eq!(read(ask(&gateway, "dave", 1, 50_000).await).await, 1, "of another organisation");

    let requests = [("bob", 19), ("carol", 10)].into_iter().flat_map(|(user, times)| vec![user; times]);
    for user in requests {
        assert_eq!(read(ask(&gateway, user, 1, 1).await).await, 1);
    }
    let denied = ask(&gateway, "carol", 1, 1).await;
    assert_eq!([field(&denied, "limit-requests"), field(&denied, "remaining-requests")], [30, 0]);
    assert_eq!(too_much(denied).await, ("requests".to_owned(), "acme has 30 requests in 1m; next try: ".to_owned()));
}

#[tokio::test]
async fn a_request_that_its_plan_never_admits_is_told_no_time_to_wait() {
    let gateway = start("memory://");
    let denied = ask(&gateway, "alice", 1, 10_000).await;
    assert!(!denied.headers().contains_key("retry-after"));
    assert_eq!(error(denied, 429).await["message"], "your plan has 10,000 tokens in 1m; next try: never");
    assert_eq!(ask(&gateway, "alice", 1, u64::MAX).await.status(), 422);
    assert_eq!(read(ask(&gateway, "alice", 1, 9_999).await).await, 1, "nothing was counted");
}

#[tokio::test]
async fn a_request_without_the_key_of_a_user_is_not_counted() {
    let gateway = start("memory://");
    let without = gateway.request(Method::POST, "/v1/chat/completions").json(&json!({ "messages": [] }));
    for answer in [ask(&gateway, "mallory", 1, 1).await, without.send().await.unwrap()] {
        assert!(!answer.headers().contains_key("x-ratelimit-limit-requests"));
        assert_eq!(error(answer, 401).await["code"], "invalid_api_key");
    }
}
