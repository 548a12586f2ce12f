//! Every algorithm decides the calls of a function as it says.

use std::future::Future;
use std::time::Duration;

use tallygate::{Limiter, Rejection, rate_limit};
use tokio::time::advance;

use crate::grammar::{Runs, TICK, denial};

const SECOND: Duration = Duration::from_secs(1);

#[rate_limit(rule(count = 3, per = "60s", algorithm = "sliding_window"), limiter = limiter)]
async fn sliding_window(limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

#[rate_limit(rule(count = 3, per = "60s", algorithm = "fixed_window"), limiter = limiter)]
async fn fixed_window(limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

#[rate_limit(rule(count = 3, per = "60s", algorithm = "sliding_counter"), limiter = limiter)]
async fn sliding_counter(limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

#[rate_limit(rule(count = 3, per = "60s", algorithm = "token_bucket"), limiter = limiter)]
async fn token_bucket(limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

#[rate_limit(rule(count = 3, cron = "@yearly"), limiter = limiter)]
async fn every_year(limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

/// Three calls are admitted, the fourth when its wait has passed and not a microsecond earlier.
async fn assert_exact<F>(call: impl Fn(Limiter, std::rc::Rc<Runs>) -> F) -> Duration
where
    F: Future<Output = Result<u32, Rejection>>,
{
    let (limiter, runs) = (Limiter::in_memory(), std::rc::Rc::new(Runs::default()));
    let call = || call(limiter.clone(), runs.clone());
    for run in 1..=3 {
        assert_eq!(call().await.unwrap(), run);
        advance(SECOND / 10).await;
    }
    let wait = denial(call().await).retry_after().unwrap();
    advance(wait.saturating_sub(TICK)).await;
    assert_eq!(denial(call().await).retry_after(), Some(TICK));
    advance(TICK).await;
    assert_eq!(call().await.unwrap(), 4, "the body ran once for each admission, and for no denial");
    wait
}

#[tokio::test(start_paused = true)]
async fn a_sliding_window_waits_for_its_first_call_to_leave_it() {
    let wait = assert_exact(|limiter, runs| async move { sliding_window(&limiter, &runs).await }).await;
    assert_eq!(wait, Duration::from_millis(59_700));
}

#[tokio::test(start_paused = true)]
async fn a_fixed_window_waits_for_its_end() {
    let wait = assert_exact(|limiter, runs| async move { fixed_window(&limiter, &runs).await }).await;
    assert_eq!(wait, Duration::from_millis(59_700));
}

#[tokio::test(start_paused = true)]
async fn a_sliding_counter_waits_for_its_slot_to_fade() {
    let wait = assert_exact(|limiter, runs| async move { sliding_counter(&limiter, &runs).await }).await;
    assert!(wait <= 120 * SECOND, "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn a_token_bucket_waits_for_the_next_token() {
    let wait = assert_exact(|limiter, runs| async move { token_bucket(&limiter, &runs).await }).await;
    assert_eq!(wait, Duration::from_millis(19_700));
}

#[tokio::test(start_paused = true)]
async fn a_schedule_waits_for_its_next_tick() {
    let wait = assert_exact(|limiter, runs| async move { every_year(&limiter, &runs).await }).await;
    assert!(wait <= 366 * 86_400 * SECOND, "{wait:?}");
}

#[rate_limit(rule(count = 1, per = "1s", algorithm = "token_bucket", capacity = 5), limiter = limiter)]
async fn roomy(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[rate_limit(
    rule(count = 1, per = "1s", algorithm = "token_bucket", capacity = 5, initial = 2, reset_after = "1h"),
    limiter = limiter
)]
async fn cautious(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_bucket_holds_as_many_as_its_capacity() {
    let limiter = Limiter::in_memory();
    for _ in 0..5 {
        roomy(&limiter).await.unwrap();
    }
    assert_eq!(denial(roomy(&limiter).await).retry_after(), Some(SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_starts_with_what_it_is_given_and_starts_again_when_it_was_left_alone() {
    let limiter = Limiter::in_memory();
    let admitted = async || {
        let mut admitted = 0;
        while cautious(&limiter).await.is_ok() {
            admitted += 1;
        }
        admitted
    };
    assert_eq!(admitted().await, 2);
    advance(1800 * SECOND).await;
    assert_eq!(admitted().await, 5);
    advance(3600 * SECOND).await;
    assert_eq!(admitted().await, 2);
}

#[rate_limit(rule(count = 1, cron = "0 0 6 * * *", tz = "Asia/Shanghai"), limiter = limiter)]
async fn by_the_sun(limiter: &Limiter, zone: &str) -> Result<(), Rejection> {
    let _ = (limiter, zone);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_schedule_ticks_in_its_time_zone() {
    let limiter = Limiter::in_memory();
    by_the_sun(&limiter, "").await.unwrap();
    let rejection = denial(by_the_sun(&limiter, "").await);
    let rule = rejection.rule().unwrap();
    assert_eq!((rule.count(), rule.per()), (1, None));
    assert_eq!(rule.rule().to_string(), r#"1 per "0 0 6 * * *" Asia/Shanghai"#);
    assert!(rejection.retry_after().unwrap() <= 86_400 * SECOND);
}
