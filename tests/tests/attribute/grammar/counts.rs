//! A count may be an expression over the arguments.

use std::time::Duration;

use tallygate::{Limiter, Rejection, rate_limit};
use tokio::time::advance;

use crate::grammar::{Runs, denial};

struct Plan {
    calls: u64,
}

impl Plan {
    fn calls(&self) -> u64 {
        self.calls
    }
}

#[rate_limit(rule(count = plan.calls(), per = "1h"), limiter = limiter)]
async fn call(plan: &Plan, limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

#[tokio::test(start_paused = true)]
async fn every_call_says_how_many_there_may_be_of_one_tally() {
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    let (free, paid) = (Plan { calls: 1 }, Plan { calls: 3 });
    call(&free, &limiter, &runs).await.unwrap();
    let rejection = denial(call(&free, &limiter, &runs).await);
    assert_eq!((rejection.rule().unwrap().count(), rejection.retry_after()), (1, Some(Duration::from_secs(3600))));
    call(&paid, &limiter, &runs).await.unwrap();
    assert_eq!(call(&paid, &limiter, &runs).await.unwrap(), 3);
    assert_eq!(denial(call(&paid, &limiter, &runs).await).rule().unwrap().count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_count_of_zero_closes_the_door() {
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    let rejection = denial(call(&Plan { calls: 0 }, &limiter, &runs).await);
    assert_eq!((rejection.retry_after(), runs.0.get()), (None, 0));
    call(&Plan { calls: 1 }, &limiter, &runs).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_count_beyond_its_algorithm_is_the_greatest() {
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    for _ in 0..100 {
        call(&Plan { calls: u64::MAX }, &limiter, &runs).await.unwrap();
    }
}

#[rate_limit(
    prevent_duplicate(per = "1s"),
    rule(count = *list.first().unwrap_or(&1), per = "1m", algorithm = "fixed_window"),
    rule(count = 2, per = "1m"),
    rule(count = list.len() as u64, per = "1h", algorithm = "token_bucket", capacity = 9),
    rule(count = if list.is_empty() { 1 } else { 8 }, per = "1d", algorithm = "sliding_counter"),
    limiter = limiter
)]
async fn several(list: Vec<u64>, limiter: &Limiter) -> Result<Vec<u64>, Rejection> {
    let _ = limiter;
    Ok(list)
}

#[tokio::test(start_paused = true)]
async fn every_algorithm_may_vary_beside_rules_that_do_not() {
    let limiter = Limiter::in_memory();
    assert_eq!(several(vec![1, 2], &limiter).await.unwrap(), [1, 2]);
    advance(Duration::from_secs(1)).await;
    assert_eq!(denial(several(vec![1, 2], &limiter).await).rule().unwrap().position(), 1);
    several(vec![5, 2], &limiter).await.unwrap();
    advance(Duration::from_secs(1)).await;
    assert_eq!(denial(several(vec![5, 2], &limiter).await).rule().unwrap().position(), 2);
    let closed = denial(several(vec![], &limiter).await);
    assert_eq!((closed.rule().unwrap().position(), closed.retry_after()), (3, None));
}

struct Api {
    limiter: Limiter,
    calls: u64,
}

impl Api {
    #[rate_limit(rule(count = self.calls, per = "1h"), limiter = self.limiter)]
    async fn call(&self) -> Result<(), Rejection> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_may_take_its_count_from_itself() {
    let api = Api { limiter: Limiter::in_memory(), calls: 1 };
    api.call().await.unwrap();
    denial(api.call().await);
}
