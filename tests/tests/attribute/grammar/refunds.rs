//! A call may be counted no more when its result is known.

use std::time::Duration;

use tallygate::{Limiter, Rejection, RejectionKind, rate_limit};
use tallygate_harness::server::{Server, connected};

use crate::grammar::{Runs, denial};

/// An error of the user's own.
#[derive(Debug)]
pub(crate) enum Failure {
    Wrong,
    Rejected(Rejection),
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<std::num::ParseIntError> for Failure {
    fn from(_: std::num::ParseIntError) -> Self {
        Self::Wrong
    }
}

pub(crate) fn is_rejected<T>(result: &Result<T, Failure>) -> bool {
    matches!(result, Err(Failure::Rejected(rejection)) if rejection.kind() == RejectionKind::Limited)
}

/// Fails by `?` unless it is a number, and leaves by `return` if it is 0.
#[rate_limit(key = "{user}", rule(count = 2, per = "1h"), refund_if = Result::is_ok, limiter = limiter)]
async fn login(user: &str, mut password: String, limiter: &Limiter, runs: &Runs) -> Result<u32, Failure> {
    #![allow(unused_variables)]
    const NOTHING: u32 = 0;
    runs.count();
    password.push('0');
    if password == "00" {
        return Ok(NOTHING);
    }
    let number: u32 = password.parse()?;
    Ok(number)
}

async fn only_failures_count(limiter: &Limiter) {
    let runs = Runs::default();
    for _ in 0..5 {
        assert_eq!(login("alice", "1".into(), limiter, &runs).await.unwrap(), 10);
        assert_eq!(login("alice", "0".into(), limiter, &runs).await.unwrap(), 0);
    }
    for _ in 0..2 {
        assert!(matches!(login("alice", "x".into(), limiter, &runs).await, Err(Failure::Wrong)));
        login("bob", "1".into(), limiter, &runs).await.unwrap();
    }
    assert!(is_rejected(&login("alice", "1".into(), limiter, &runs).await));
    assert_eq!(runs.0.get(), 14);
}

#[tokio::test(start_paused = true)]
async fn only_failures_count_if_successes_are_refunded() {
    only_failures_count(&Limiter::in_memory()).await;
}

#[tokio::test]
async fn only_failures_count_on_redis() {
    only_failures_count(&Server::start().limiter().await).await;
}

#[rate_limit(rule(count = 1, per = "1h"), refund_if = |result| matches!(result, Ok(length) if length.is_empty()), limiter = limiter)]
async fn search(text: &str, limiter: &Limiter) -> Result<Vec<u8>, Rejection> {
    tokio::task::yield_now().await;
    let _ = limiter;
    Ok(text.bytes().collect())
}

#[tokio::test(start_paused = true)]
async fn a_closure_may_inspect_the_result() {
    let limiter = Limiter::in_memory();
    for _ in 0..3 {
        assert!(search("", &limiter).await.unwrap().is_empty());
    }
    assert_eq!(search("a", &limiter).await.unwrap(), [b'a']);
    denial(search("", &limiter).await);
}

#[rate_limit(prevent_duplicate, rule(count = 2, per = "1h"), refund_if = Result::is_err, limiter = limiter)]
async fn order(fail: bool, limiter: &Limiter) -> Result<(), Failure> {
    let _ = limiter;
    if fail { Err(Failure::Wrong) } else { Ok(()) }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_back_may_be_repeated_at_once() {
    let limiter = Limiter::in_memory();
    for _ in 0..5 {
        assert!(matches!(order(true, &limiter).await, Err(Failure::Wrong)));
    }
    order(false, &limiter).await.unwrap();
    let again = order(true, &limiter).await;
    assert!(matches!(again, Err(Failure::Rejected(rejection)) if rejection.kind() == RejectionKind::Duplicate));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_in_its_body_stays_counted() {
    let limiter = Limiter::in_memory();
    assert!(futures_util::FutureExt::now_or_never(search("", &limiter)).is_none());
    denial(search("", &limiter).await);
}

#[rate_limit(rule(count = 1, per = "1h"), refund_if = Result::is_ok, limiter = limiter)]
async fn closes(server: &mut Server, limiter: &Limiter) -> Result<u8, Rejection> {
    server.kill();
    Ok(1)
}

#[tokio::test]
async fn an_outage_leaves_the_call_counted_and_its_result_as_it_is() {
    let mut server = Server::start();
    let limiter = connected(&Limiter::builder().deadline(Duration::from_secs(5)), &server.url()).await;
    assert_eq!(closes(&mut server, &limiter).await.unwrap(), 1);
    assert_eq!(closes(&mut server, &limiter).await.unwrap_err().kind(), RejectionKind::Unavailable);
}
