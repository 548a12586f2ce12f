//! A call may count as several.

use std::time::Duration;

use tallygate::{Limiter, Rejection, rate_limit};
use tokio::time::advance;

use crate::grammar::{Runs, denial};

#[rate_limit(key = "{user}", rule(count = 10, per = "1h"), cost = items.len() as u64, limiter = limiter)]
async fn import(user: &str, items: Vec<u8>, limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    drop(items);
    Ok(runs.count())
}

#[tokio::test(start_paused = true)]
async fn a_call_counts_as_what_it_costs() {
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    import("a", vec![0; 4], &limiter, &runs).await.unwrap();
    advance(Duration::from_secs(60)).await;
    import("a", vec![0; 6], &limiter, &runs).await.unwrap();
    let rejection = denial(import("a", vec![0; 4], &limiter, &runs).await);
    assert_eq!(rejection.retry_after(), Some(Duration::from_secs(3540)));
    assert_eq!(denial(import("a", vec![0; 5], &limiter, &runs).await).retry_after(), Some(Duration::from_secs(3600)));
    assert_eq!(import("b", vec![0; 10], &limiter, &runs).await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_can_never_be_admitted_has_no_retry_after() {
    let limiter = Limiter::in_memory();
    let runs = Runs::default();
    assert_eq!(denial(import("a", vec![0; 11], &limiter, &runs).await).retry_after(), None);
}

#[tokio::test(start_paused = true)]
async fn a_cost_that_evaluates_to_zero_counts_as_one() {
    let limiter = Limiter::in_memory();
    let runs = Runs::default();
    for _ in 0..10 {
        import("a", vec![], &limiter, &runs).await.unwrap();
    }
    denial(import("a", vec![], &limiter, &runs).await);
    assert_eq!(runs.0.get(), 10);
}

#[rate_limit(
    key = "{user}",
    rule(count = 2, per = "1h"),
    cost = items.len() as u64,
    allow_zero_cost,
    limiter = limiter
)]
async fn import_or_touch(user: &str, items: &[u8], limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cost_of_zero_counts_nothing_where_the_attribute_allows_it() {
    let limiter = Limiter::in_memory();
    for _ in 0..9 {
        import_or_touch("a", &[], &limiter).await.unwrap();
    }
    import_or_touch("a", &[0; 2], &limiter).await.unwrap();
    denial(import_or_touch("a", &[0; 1], &limiter).await);
    import_or_touch("a", &[], &limiter).await.unwrap();
}

#[rate_limit(prevent_duplicate, rule(count = 7, per = "1h"), cost = 3, limiter = limiter)]
async fn thrice(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cost_may_be_a_number_and_a_duplicate_is_one_call_whatever_it_costs() {
    let limiter = Limiter::in_memory();
    for _ in 0..2 {
        thrice(&limiter).await.unwrap();
        advance(Duration::from_secs(5)).await;
    }
    assert_eq!(denial(thrice(&limiter).await).rule().unwrap().position(), 1);
}

struct Batch {
    limiter: Limiter,
    weight: u64,
}

impl Batch {
    #[rate_limit(rule(count = self.weight + 1, per = "1h"), cost = self.weight, limiter = self.limiter)]
    fn run(&self) -> impl Future<Output = Result<u64, Rejection>> + Send + use<> {
        let weight = self.weight;
        async move { Ok(weight) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_future_is_weighed_when_it_is_made() {
    let batch = Batch { limiter: Limiter::in_memory(), weight: 2 };
    assert_eq!(batch.run().await.unwrap(), 2);
    denial(batch.run().await);
}
