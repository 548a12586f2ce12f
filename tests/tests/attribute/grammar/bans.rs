//! Who goes on being denied may be banned.

use std::time::Duration;

use tallygate::{Limiter, Rejection, RejectionKind, rate_limit};
use tallygate_harness::server::Server;
use tokio::time::advance;

use crate::grammar::{Runs, denial};

#[rate_limit(
    key = "{user}",
    rule(count = 1, per = "1m"),
    ban(denials = 3, within = "10m", duration = "1h", message = "{user:trim} is out for {@retry_after}"),
    message = "slow down: {@count} per {@per}",
    limiter = limiter
)]
async fn draw(user: &str, limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

async fn abuse(limiter: &Limiter) {
    let runs = Runs::default();
    draw("a", limiter, &runs).await.unwrap();
    for _ in 0..3 {
        let rejection = denial(draw("a", limiter, &runs).await);
        assert_eq!((rejection.kind(), rejection.to_string().as_str()), (RejectionKind::Limited, "slow down: 1 per 1m"));
    }
    let banned = denial(draw("a", limiter, &runs).await);
    assert_eq!((banned.kind(), banned.rule().is_none()), (RejectionKind::Banned, true));
    assert!(["a is out for 1h", "a is out for 60m"].contains(&banned.to_string().as_str()), "{banned}");
    assert_eq!(draw("b", limiter, &runs).await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_rejected_as_banned_until_the_ban_is_over() {
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    abuse(&limiter).await;
    advance(Duration::from_secs(3599)).await;
    let banned = denial(draw("a", &limiter, &runs).await);
    assert_eq!(
        (banned.kind(), banned.retry_after(), runs.0.get()),
        (RejectionKind::Banned, Some(Duration::from_secs(1)), 0)
    );
    advance(Duration::from_secs(1)).await;
    assert_eq!(draw("a", &limiter, &runs).await.unwrap(), 1);
}

#[tokio::test]
async fn a_call_is_rejected_as_banned_on_redis() {
    abuse(&Server::start().limiter().await).await;
}

#[rate_limit(rule(count = 1, per = "1h"), ban(denials = 1, within = "1m", duration = "2h"), message = "{@rule}", limiter = limiter)]
async fn plain(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_ban_without_a_message_has_the_usual_one() {
    let limiter = Limiter::in_memory();
    plain(&limiter).await.unwrap();
    assert_eq!(denial(plain(&limiter).await).to_string(), "1 per 1h");
    assert_eq!(denial(plain(&limiter).await).to_string(), "banned: no requests are admitted; try again in 2h");
}

#[rate_limit(prevent_duplicate, rule(count = 9, per = "1h"), ban(denials = 2, within = "1m", duration = "1m"), limiter = limiter)]
async fn repeated(limiter: &Limiter) -> Result<(), Rejection> {
    let _ = limiter;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn duplicates_are_denials_and_calls_during_a_ban_are_none() {
    let limiter = Limiter::in_memory();
    repeated(&limiter).await.unwrap();
    for kind in [RejectionKind::Duplicate, RejectionKind::Duplicate, RejectionKind::Banned] {
        assert_eq!(denial(repeated(&limiter).await).kind(), kind);
    }
    advance(Duration::from_secs(59)).await;
    assert_eq!(denial(repeated(&limiter).await).kind(), RejectionKind::Banned);
    advance(Duration::from_secs(1)).await;
    repeated(&limiter).await.unwrap();
}
