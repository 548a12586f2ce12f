//! The file to copy, `captcha_server/api_error.rs`: the response to each kind of rejection.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../captcha_server/api_error.rs"]
#[allow(dead_code, reason = "only the server takes telephone numbers")]
mod api_error;

use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use tallygate::{Ban, Limiter, Policy, Rejection, Rule, Subject};

use self::api_error::ApiError;

const MINUTE: Duration = Duration::from_secs(60);

/// Makes a call of that cost, which has to be denied.
async fn denied(limiter: &Limiter, policy: &Policy, cost: u64) -> Rejection {
    let decision = limiter.check(policy, &Subject::of("alice")).cost(cost).await.unwrap();
    decision.into_result().unwrap_err().into()
}

/// The status, and the seconds of `Retry-After`.
fn response(rejection: Rejection) -> (StatusCode, Option<String>) {
    let response = ApiError::from(rejection).into_response();
    let retry_after = response.headers().get(header::RETRY_AFTER).map(|seconds| seconds.to_str().unwrap().to_owned());
    (response.status(), retry_after)
}

#[tokio::test(start_paused = true)]
async fn a_response_says_when_to_come_back_only_if_that_helps() {
    let limiter = Limiter::in_memory();
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, MINUTE)).build().unwrap();

    let never = denied(&limiter, &policy, 2).await;
    assert_eq!(response(never), (StatusCode::TOO_MANY_REQUESTS, None));

    assert!(limiter.check(&policy, &Subject::of("alice")).await.unwrap().is_allowed());
    tokio::time::advance(Duration::from_millis(500)).await;
    let too_many = denied(&limiter, &policy, 1).await;
    assert_eq!(response(too_many), (StatusCode::TOO_MANY_REQUESTS, Some("60".to_owned())));

    let closed = denied(&limiter, &policy.with_counts([0]), 1).await;
    assert_eq!(response(closed), (StatusCode::TOO_MANY_REQUESTS, None));
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_rejection_has_its_status() {
    let limiter = Limiter::in_memory();
    let ban = Ban::new(3, MINUTE, 10 * MINUTE);
    let policy = Policy::builder("p").rule(Rule::duplicate(MINUTE)).ban(ban).build().unwrap();
    let alice = Subject::of("alice");

    assert!(limiter.check(&policy, &alice).await.unwrap().is_allowed());
    let duplicate = denied(&limiter, &policy, 1).await;
    assert_eq!(response(duplicate), (StatusCode::CONFLICT, Some("60".to_owned())));

    limiter.check(&policy, &alice).ban(10 * MINUTE).await.unwrap();
    let banned = denied(&limiter, &policy, 1).await;
    assert_eq!(response(banned), (StatusCode::TOO_MANY_REQUESTS, Some("600".to_owned())));

    let unlabelled = Policy::builder("q").rule_on("network", Rule::sliding_window(1, MINUTE)).build().unwrap();
    let error = limiter.check(&unlabelled, &alice).await.unwrap_err();
    let unavailable = Rejection::unavailable(unlabelled.name(), error);
    assert_eq!(response(unavailable), (StatusCode::SERVICE_UNAVAILABLE, None));
}
