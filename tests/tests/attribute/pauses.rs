//! Functions that pause their subject by their result.

use std::time::Duration;

use tallygate::{Limiter, Policy, Rejection, RejectionKind, Rule, Subject, rate_limit};

const MINUTE: Duration = Duration::from_secs(60);

fn assert_paused<T: std::fmt::Debug>(result: Result<T, Rejection>, longest: Duration) {
    let rejection = result.unwrap_err();
    assert_eq!(rejection.kind(), RejectionKind::Paused);
    assert!(rejection.retry_after().is_some_and(|wait| wait <= longest && wait + MINUTE > longest), "{rejection:?}");
}

#[rate_limit(
    key = "{account}",
    rule(count = 100, per = "1h"),
    limiter = limiter,
    cost = 10,
    settle = |_| 3,
    pause = |answer| *answer.as_ref().ok()?
)]
async fn charge(limiter: &Limiter, account: &str, answer: Option<Duration>) -> Result<Option<Duration>, Rejection> {
    let _ = limiter;
    Ok(answer)
}

#[tokio::test]
async fn a_result_pauses_its_subject_and_the_call_is_settled() {
    let limiter = Limiter::in_memory();
    assert!(charge(&limiter, "a", None).await.is_ok());
    assert!(charge(&limiter, "a", Some(MINUTE)).await.is_ok());
    assert_paused(charge(&limiter, "a", None).await, MINUTE);
    assert!(charge(&limiter, "b", None).await.is_ok());
}

#[rate_limit(
    key = "{account}",
    rule(count = 9, per = "1h"),
    rule(count = 99, per = "1h", key = "{host}"),
    limiter = limiter,
    pause = |answer| *answer.as_ref().ok()?,
    pause_key = "{host}"
)]
async fn of_host(
    limiter: &Limiter,
    account: &str,
    host: &str,
    answer: Option<Duration>,
) -> Result<Option<Duration>, Rejection> {
    let _ = (limiter, account, host);
    Ok(answer)
}

#[tokio::test]
async fn a_result_pauses_the_subject_that_the_attribute_names() {
    let limiter = Limiter::in_memory();
    of_host(&limiter, "a", "x", Some(MINUTE)).await.unwrap();
    for account in ["a", "b"] {
        assert_paused(of_host(&limiter, account, "x", None).await, MINUTE);
        of_host(&limiter, account, "y", None).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_says_nothing_opens_its_subject_after_a_pause() {
    let limiter = Limiter::in_memory();
    let open = || async { tokio::join!(two_at_once(&limiter, None), two_at_once(&limiter, None)) };
    two_at_once(&limiter, Some(MINUTE)).await.unwrap();
    tokio::time::advance(MINUTE).await;
    let (tried, other) = open().await;
    assert!(tried.is_ok());
    assert_paused(other, MINUTE);
    let (first, second) = open().await;
    assert!(first.is_ok() && second.is_ok());
}

#[rate_limit(rule(count = 9, per = "1h"), limiter = limiter, pause = |answer| *answer.as_ref().ok()?)]
async fn two_at_once(limiter: &Limiter, answer: Option<Duration>) -> Result<Option<Duration>, Rejection> {
    let _ = limiter;
    tokio::task::yield_now().await;
    Ok(answer)
}

#[rate_limit(rule(count = 9, per = "1h"), limiter = limiter, longest_pause = "5m", pause = |_| Duration::MAX)]
fn blocking(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[test]
fn a_plain_function_pauses_for_no_longer_than_the_longest() {
    let limiter = Limiter::in_memory();
    blocking(&limiter).unwrap();
    assert_paused(blocking(&limiter), 5 * MINUTE);
}

#[rate_limit(rule(count = 9, per = "1h"), limiter = limiter, pause = |answer| answer.as_ref().map_or(Some(Duration::ZERO), |answer| *answer))]
fn nested(limiter: &Limiter, depth: u32, answer: Option<Duration>) -> Result<Option<Duration>, Rejection> {
    if depth > 0 {
        nested(limiter, depth - 1, None)?;
    }
    Ok(answer)
}

#[tokio::test(start_paused = true)]
async fn a_plain_function_whose_result_says_nothing_opens_its_subject_after_a_pause() {
    let limiter = Limiter::in_memory();
    nested(&limiter, 0, Some(MINUTE)).unwrap();
    tokio::time::advance(MINUTE).await;
    assert_paused(nested(&limiter, 1, None), MINUTE);
    nested(&limiter, 0, None).unwrap();
    nested(&limiter, 1, None).unwrap();
}

#[rate_limit(policy = policy, key = "{account}", limiter = limiter, pause = |_| MINUTE)]
async fn by_policy(policy: &Policy, limiter: &Limiter, account: &str) -> Result<(), Rejection> {
    let _ = (policy, limiter);
    Ok(())
}

#[tokio::test]
async fn a_function_pauses_the_subject_of_a_policy_that_is_pausable() {
    let policy = |name| Policy::builder(name).rule(Rule::sliding_window(9, MINUTE)).key("{account}");
    let (limiter, pausable) = (Limiter::in_memory(), policy("pausable").pausable().build().unwrap());
    by_policy(&pausable, &limiter, "a").await.unwrap();
    assert_paused(by_policy(&pausable, &limiter, "a").await, MINUTE);
    limiter.check(&pausable, &Subject::of("a")).resume().await.unwrap();
    by_policy(&pausable, &limiter, "a").await.unwrap();
    // Elsewhere it is a mistake, which the log has.
    let other = policy("other").build().unwrap();
    for _ in 0..2 {
        by_policy(&other, &limiter, "a").await.unwrap();
    }
}

#[rate_limit(rule(count = 9, per = "1h"), limiter = limiter, refund_if = Result::is_err, pause = |answer| *answer.as_ref().ok()?)]
async fn refunded(
    limiter: &Limiter,
    answer: Result<Option<Duration>, &str>,
) -> Result<Option<Duration>, Box<dyn std::error::Error + Send + Sync>> {
    let _ = limiter;
    tokio::task::yield_now().await;
    Ok(answer?)
}

#[tokio::test(start_paused = true)]
async fn neither_a_refund_nor_a_pause_of_no_length_opens_a_subject() {
    let limiter = Limiter::in_memory();
    refunded(&limiter, Ok(Some(MINUTE))).await.unwrap();
    tokio::time::advance(MINUTE).await;
    for says_nothing in [Err("gone"), Ok(Some(Duration::ZERO)), Ok(None)] {
        let (_tried, other) = tokio::join!(refunded(&limiter, says_nothing), refunded(&limiter, Ok(None)));
        assert!(other.unwrap_err().to_string().contains("accepts no requests"));
    }
    let (first, second) = tokio::join!(refunded(&limiter, Ok(None)), refunded(&limiter, Ok(None)));
    assert!(first.is_ok() && second.is_ok());
}

#[rate_limit(rule(count = 9, per = "1h"), limiter = limiter, longest_pause = "5m", check_fn = by_hand_limit)]
async fn by_hand(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    tokio::task::yield_now().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_opens_its_subject_after_a_pause_by_hand() {
    let limiter = Limiter::in_memory();
    by_hand_limit(&limiter).pause(MINUTE).await.unwrap();
    tokio::time::advance(MINUTE).await;
    let (tried, other) = tokio::join!(by_hand(&limiter), by_hand(&limiter));
    tried.unwrap();
    assert_paused(other, MINUTE);
    let (first, second) = tokio::join!(by_hand(&limiter), by_hand(&limiter));
    assert!(first.is_ok() && second.is_ok());
}
