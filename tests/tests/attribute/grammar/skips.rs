//! A call may be left out.

use tallygate::{Limiter, Rejection, rate_limit};

use crate::grammar::{Runs, denial};

struct User {
    name: Option<String>,
    admin: bool,
}

#[rate_limit(
    key = "{user.name.as_deref().unwrap()}",
    rule(count = calls, per = "1h"),
    message = "not now, {user.name.as_deref().unwrap():hash}",
    skip_if = user.admin || user.name.is_none(),
    limiter = limiter
)]
async fn call(user: &User, calls: u64, limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_skipped_runs_and_counts_nothing() {
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    let user = |admin| User { name: Some("a".into()), admin };
    for _ in 0..3 {
        call(&user(true), 1, &limiter, &runs).await.unwrap();
    }
    call(&user(false), 1, &limiter, &runs).await.unwrap();
    assert!(denial(call(&user(false), 1, &limiter, &runs).await).to_string().starts_with("not now, "));
    assert_eq!(call(&user(true), 1, &limiter, &runs).await.unwrap(), 5);
}

#[tokio::test(start_paused = true)]
async fn what_is_skipped_is_not_rendered() {
    let nobody = User { name: None, admin: false };
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    assert_eq!(call(&nobody, 0, &limiter, &runs).await.unwrap(), 1);
}

#[rate_limit(key = "{n}", rule(count = 1, per = "1h"), skip_if = n.is_empty(), message = "not {n}")]
fn later(n: &str) -> impl Future<Output = Result<usize, Rejection>> + Send + use<> {
    let length = n.len();
    async move { Ok(length) }
}

#[rate_limit(rule(count = 1, per = "1h"), skip_if = admin, refund_if = Result::is_err, limiter = limiter)]
async fn refunded(admin: bool, limiter: &Limiter) -> Result<bool, Rejection> {
    let _ = limiter;
    Ok(admin)
}

#[tokio::test]
async fn a_future_may_be_skipped_and_so_may_one_that_gives_back() {
    for _ in 0..2 {
        assert_eq!(tokio::spawn(later("")).await.unwrap().unwrap(), 0);
    }
    assert_eq!((later("1").await.ok(), later("1").await.unwrap_err().to_string()), (Some(1), "not 1".to_owned()));
    let limiter = Limiter::in_memory();
    for _ in 0..2 {
        assert!(refunded(true, &limiter).await.unwrap());
    }
    assert!(!refunded(false, &limiter).await.unwrap());
    denial(refunded(false, &limiter).await);
}
