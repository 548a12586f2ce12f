//! What counts as the same call again.

use std::time::Duration;

use tallygate::{Limiter, Rejection, RejectionKind, rate_limit};
use tokio::time::advance;

use crate::grammar::{Runs, TICK, denial};

#[rate_limit(key = "{order}", prevent_duplicate(per = "30s"), limiter = limiter)]
async fn pay(order: u32, limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

#[tokio::test(start_paused = true)]
async fn the_same_call_is_a_duplicate_for_as_long_as_is_said() {
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    pay(1, &limiter, &runs).await.unwrap();
    pay(2, &limiter, &runs).await.unwrap();
    advance(Duration::from_micros(29_999_999)).await;
    let rejection = denial(pay(1, &limiter, &runs).await);
    assert_eq!((rejection.kind(), rejection.retry_after()), (RejectionKind::Duplicate, Some(TICK)));
    advance(TICK).await;
    assert_eq!(pay(1, &limiter, &runs).await.unwrap(), 3);
}

#[rate_limit(prevent_duplicate(), limiter = limiter)]
async fn bare(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_arguments_it_is_five_seconds() {
    let limiter = Limiter::in_memory();
    bare(&limiter).await.unwrap();
    assert_eq!(denial(bare(&limiter).await).retry_after(), Some(Duration::from_secs(5)));
}

#[rate_limit(prevent_duplicate(message = "you have paid already"), rule(count = 2, per = "1h"), limiter = limiter)]
async fn settle(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_has_a_message_of_its_own() {
    let limiter = Limiter::in_memory();
    settle(&limiter).await.unwrap();
    assert_eq!(denial(settle(&limiter).await).to_string(), "you have paid already");
    advance(Duration::from_secs(5)).await;
    settle(&limiter).await.unwrap();
    advance(Duration::from_secs(5)).await;
    assert_eq!(denial(settle(&limiter).await).message(), None);
}
