//! A call may wait for admission.

use std::time::Duration;

use tallygate::{Limiter, Rejection, rate_limit};
use tokio::time::Instant;

use crate::grammar::{Runs, denial};

#[rate_limit(rule(count = 2, per = "1s"), wait = "1500ms", limiter = limiter)]
async fn export(limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_until_it_is_admitted_or_will_not_be_in_time() {
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    let start = Instant::now();
    let calls = (0..6).map(|_| async { (export(&limiter, &runs).await, start.elapsed()) });
    let answers = futures_util::future::join_all(calls).await;
    let (admitted, rejected): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(answer, _)| answer.is_ok());
    let times: Vec<_> = admitted.iter().map(|(_, time)| time.as_secs()).collect();
    assert_eq!((times, runs.0.get()), (vec![0, 0, 1, 1], 4));
    assert!(rejected.iter().all(|(_, time)| *time <= Duration::from_millis(1500)), "{rejected:?}");
    for (answer, _) in rejected {
        assert!(denial(answer).retry_after().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_waits_neither_runs_nor_counts() {
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    export(&limiter, &runs).await.unwrap();
    export(&limiter, &runs).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(500), export(&limiter, &runs)).await.is_err());
    assert_eq!((export(&limiter, &runs).await.unwrap(), export(&limiter, &runs).await.unwrap()), (3, 4));
}

#[rate_limit(key = "{n}", rule(count = 1, per = "1s"), wait = "2s", message = "not {n}, in {@retry_after}")]
fn later(n: u8) -> impl Future<Output = Result<u8, Rejection>> + Send + use<> {
    async move { Ok(n) }
}

#[tokio::test(start_paused = true)]
async fn a_future_waits_when_it_is_polled() {
    let start = Instant::now();
    let (one, two) = (later(1), later(1));
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(one.await.unwrap() + tokio::spawn(two).await.unwrap().unwrap(), 2);
    assert_eq!(start.elapsed(), Duration::from_secs(6));
}
