//! The rules of a function decide its calls.

use std::cell::Cell;
use std::time::Duration;

use tallygate::{Limiter, Rejection, RejectionKind, rate_limit};

use crate::assert_limited;

#[rate_limit(rule(count = 10, per = "60s"), rule(count = 20, per = "120s"), prevent_duplicate)]
async fn customers_line() -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_customers_line_refuses_what_is_repeated() {
    customers_line().await.unwrap();
    let repeated = customers_line().await.unwrap_err();
    assert_eq!(repeated.kind(), RejectionKind::Duplicate);
    let rule = repeated.rule().unwrap();
    assert_eq!((rule.position(), rule.count(), rule.per()), (0, 1, Some(Duration::from_secs(5))));
}

// A limiter of its own: a clock that is advanced would let the tallies of other tests expire.
#[rate_limit(rule(count = 10, per = "60s"), rule(count = 20, per = "120s"), prevent_duplicate, limiter = limiter)]
async fn customers_rules(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_customers_rules_hold() {
    let limiter = Limiter::in_memory();
    for _ in 0..10 {
        customers_rules(&limiter).await.unwrap();
        assert_eq!(customers_rules(&limiter).await.unwrap_err().kind(), RejectionKind::Duplicate);
        tokio::time::advance(Duration::from_secs(5)).await;
    }
    let rejection = customers_rules(&limiter).await.unwrap_err();
    assert_eq!(rejection.kind(), RejectionKind::Limited);
    let rule = rejection.rule().unwrap();
    assert_eq!((rule.position(), rule.count(), rule.per()), (1, 10, Some(Duration::from_secs(60))));
    assert_eq!(rejection.retry_after(), Some(Duration::from_secs(10)));
}

#[rustfmt::skip]
#[rate_limit(rule(count = 10, per = "60s",), rule(count = 20, per = "120s"), prevent_duplicate,)]
async fn trailing_comma() -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_trailing_comma_changes_nothing() {
    trailing_comma().await.unwrap();
    assert_eq!(trailing_comma().await.unwrap_err().kind(), RejectionKind::Duplicate);
}

#[rate_limit(prevent_duplicate, rule(count = 2, per = "1h",), rule(per = "1m", count = 1), limiter = limiter)]
async fn several_rules(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn rules_keep_their_order_behind_that_of_duplicates() {
    let limiter = Limiter::in_memory();
    several_rules(&limiter).await.unwrap();
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(several_rules(&limiter).await.unwrap_err().rule().unwrap().position(), 2);
    tokio::time::advance(Duration::from_secs(55)).await;
    several_rules(&limiter).await.unwrap();
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(several_rules(&limiter).await.unwrap_err().rule().unwrap().position(), 1);
}

#[rate_limit(rule(count = 2, per = "1m"))]
async fn counted(runs: &Cell<u32>) -> Result<u32, Rejection> {
    runs.set(runs.get() + 1);
    Ok(runs.get())
}

#[tokio::test]
async fn the_body_runs_once_when_admitted_and_never_when_denied() {
    let runs = Cell::new(0);
    assert_eq!(counted(&runs).await.unwrap(), 1);
    assert_eq!(counted(&runs).await.unwrap(), 2);
    assert_limited(counted(&runs).await);
    assert_limited(counted(&runs).await);
    assert_eq!(runs.get(), 2);
}

#[rate_limit(rule(count = 1, per = "1m"))]
async fn never_awaited() -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test]
async fn a_future_that_is_never_polled_counts_nothing() {
    drop(never_awaited());
    never_awaited().await.unwrap();
    assert_limited(never_awaited().await);
}
