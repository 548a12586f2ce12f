//! `local`: this process decides while Redis is away, and Redis decides again when it is back.

use futures_util::FutureExt as _;
use tallygate::testing::ManualClock;
use tallygate::{BackendErrorKind, Ban, DecidedBy, OnOutage, RejectionKind, Rule, Subject};
use tallygate_harness::clocked::{START_US, time};
use tallygate_harness::server::{Server, away, patient};

use super::{
    Duration, HOUR, admitted, builder, call, check, denied, hourly, one_of, policy, room, subject, until_decided_by,
    with_server,
};

/// From now on the server refuses to count, or no more.
fn refuse(server: &Server, is_refused: bool) {
    server.ask::<()>(&format!("CONFIG SET maxmemory {}", u8::from(is_refused)));
}

#[tokio::test]
async fn redis_decides_until_it_is_away_and_again_when_it_is_back() {
    let (mut server, limiter) = with_server(OnOutage::Local);
    let policy = policy(hourly(2));
    for _ in 0..2 {
        assert_eq!(admitted(&limiter, &policy).await.decided_by(), DecidedBy::Backend);
    }
    assert_eq!(denied(&limiter, &policy).await.decided_by(), DecidedBy::Backend);
    server.kill();
    until_decided_by(&limiter, DecidedBy::Standby).await;
    assert_eq!(room(&limiter, &policy).await, 2);
    server.restart();
    until_decided_by(&limiter, DecidedBy::Backend).await;
    // The server has forgotten everything.
    assert_eq!(admitted(&limiter, &policy).await.decided_by(), DecidedBy::Backend);
}

#[tokio::test]
async fn what_was_admitted_in_one_outage_counts_in_the_next() {
    let (server, limiter) = with_server(OnOutage::Local);
    let policy = policy(hourly(3));
    for decided_by in [DecidedBy::Standby, DecidedBy::Backend, DecidedBy::Standby, DecidedBy::Backend] {
        refuse(&server, decided_by == DecidedBy::Standby);
        assert_eq!(admitted(&limiter, &policy).await.decided_by(), decided_by);
    }
    refuse(&server, true);
    assert_eq!(room(&limiter, &policy).await, 1, "of three");
    refuse(&server, false);
    assert_eq!(admitted(&limiter, &policy).await.decided_by(), DecidedBy::Backend);
    assert_eq!(denied(&limiter, &policy).await.decided_by(), DecidedBy::Backend);
}

#[tokio::test]
async fn a_permit_is_refunded_where_it_was_counted() {
    let (server, limiter) = with_server(OnOutage::Local);
    let policy = policy(hourly(1));
    let call = || async { check(&limiter, &policy).refundable().await.unwrap().into_result() };
    let of_redis = call().await.unwrap();
    // A denial needs no memory of the server, and a refund of a call that did not count does not either.
    server.ask::<()>("FLUSHALL");
    refuse(&server, true);
    let of_standby = call().await.unwrap();
    assert_eq!(of_standby.decided_by(), DecidedBy::Standby);
    assert!(call().await.is_err());
    assert!(!of_redis.refund().await.unwrap());
    assert!(call().await.is_err(), "the standby did not count that call");
    refuse(&server, false);
    assert!(of_standby.refund().await.unwrap(), "also once the server is back");
    refuse(&server, true);
    assert_eq!(call().await.unwrap().decided_by(), DecidedBy::Standby);
}

#[tokio::test]
async fn a_permit_is_settled_where_it_was_counted() {
    let (server, limiter) = with_server(OnOutage::Local);
    let policy = policy(hourly(10));
    let call = || async { check(&limiter, &policy).cost(5).refundable().await.unwrap().into_result().unwrap() };
    let of_redis = call().await;
    refuse(&server, true);
    let of_standby = call().await;
    assert_eq!(of_standby.decided_by(), DecidedBy::Standby);
    refuse(&server, false);
    assert!(of_standby.settle(9).await.unwrap(), "also once the server is back");
    assert!(of_redis.settle(2).await.unwrap());
    let of_server = limiter.peek(&policy, subject()).await.unwrap();
    assert_eq!((of_server.decided_by(), of_server.report()[0].remaining()), (DecidedBy::Backend, 8));
    refuse(&server, true);
    assert_eq!(room(&limiter, &policy).await, 1, "of ten");
}

#[tokio::test]
async fn a_peek_counts_nothing_and_reports_what_the_standby_knows() {
    let (limiter, policy) = (one_of(1), policy(hourly(2)));
    for _ in 0..3 {
        let peek = limiter.peek(&policy, subject()).await.unwrap();
        assert_eq!((peek.decided_by(), peek.report()[0].remaining()), (DecidedBy::Standby, 2));
    }
    assert_eq!(room(&limiter, &policy).await, 2);
    let peek = limiter.peek(&policy, subject()).await.unwrap();
    assert_eq!((peek.is_allowed(), peek.report()[0].remaining()), (false, 0));
}

#[tokio::test]
async fn a_reset_reaches_the_standby_and_says_that_redis_was_not_reached() {
    let (limiter, policy) = (one_of(1), policy(hourly(2)));
    assert_eq!(room(&limiter, &policy).await, 2);
    let error = check(&limiter, &policy).reset().await.unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::Away);
    assert_eq!(room(&limiter, &policy).await, 2);
}

#[tokio::test]
async fn a_reset_while_redis_is_there_also_resets_what_the_standby_keeps() {
    let (server, limiter) = with_server(OnOutage::Local);
    let policy = policy(hourly(1));
    refuse(&server, true);
    assert_eq!(room(&limiter, &policy).await, 1);
    refuse(&server, false);
    check(&limiter, &policy).reset_all().await.unwrap();
    refuse(&server, true);
    assert_eq!(room(&limiter, &policy).await, 1);
}

#[tokio::test]
async fn a_reset_while_redis_is_there_says_how_long_the_trace_of_the_standby_may_deny_in_a_next_outage() {
    let server = Server::start();
    let limiter = patient().on_outage(OnOutage::Local).max_subjects(1).connect_lazy(server.url()).unwrap();
    let policy = policy(hourly(1));
    assert_eq!(check(&limiter, &policy).reset().await.unwrap(), None);
    refuse(&server, true);
    // What so many have left is shared by all.
    for number in 0..100 {
        let _ = limiter.check(&policy, &Subject::of("invented").and(number)).await.unwrap();
    }
    refuse(&server, false);
    let traced_for = check(&limiter, &policy).reset().await.unwrap();
    assert!(traced_for.is_some_and(|time| HOUR / 2 < time && time < HOUR + HOUR / 60), "{traced_for:?}");
    assert_eq!(limiter.peek(&policy, subject()).await.unwrap().decided_by(), DecidedBy::Backend);
    refuse(&server, true);
    // Nothing of it is counted in Redis, so this server has to refuse it, and the standby denies it.
    assert_eq!(denied(&limiter, &policy).await.decided_by(), DecidedBy::Standby);
}

#[tokio::test]
async fn a_ban_by_hand_reaches_the_standby_too() {
    let policy = |on_outage| builder(hourly(9)).ban(Ban::new(3, HOUR, HOUR)).on_outage(on_outage).build().unwrap();
    let (limiter, banning) = (one_of(1), policy(OnOutage::Local));
    check(&limiter, &banning).unban().await.unwrap_err();
    check(&limiter, &banning).ban(HOUR).await.unwrap_err();
    let denial = denied(&limiter, &banning).await;
    assert_eq!((denial.kind(), denial.decided_by()), (RejectionKind::Banned, DecidedBy::Standby));
    check(&limiter, &banning).unban().await.unwrap_err();
    assert_eq!(room(&limiter, &banning).await, 9);
    // A policy without a standby leaves none behind.
    check(&limiter, &banning).reset().await.unwrap_err();
    check(&limiter, &policy(OnOutage::Deny)).ban(HOUR).await.unwrap_err();
    assert_eq!(room(&limiter, &banning).await, 9);
    let without_ban = super::policy(hourly(1));
    assert!(check(&limiter, &without_ban).ban(HOUR).await.unwrap_err().to_string().contains("has no ban"));
}

#[tokio::test]
async fn a_call_that_waits_goes_on_with_the_standby() {
    let policy = policy(Rule::sliding_window(1, Duration::from_millis(20)));
    let limiter = one_of(1);
    for _ in 0..5 {
        let decision = check(&limiter, &policy).wait(HOUR).await.unwrap();
        assert_eq!((decision.is_allowed(), decision.decided_by()), (true, DecidedBy::Standby));
    }
    let hourly = super::policy(hourly(1));
    assert!(check(&limiter, &hourly).await.unwrap().is_allowed());
    let short = check(&limiter, &hourly).wait(Duration::from_micros(1)).await.unwrap();
    assert!(!short.is_allowed());
}

#[tokio::test]
async fn a_call_that_waits_for_redis_is_admitted_by_the_standby_when_an_outage_begins() {
    let (mut server, limiter) = with_server(OnOutage::Local);
    let policy = policy(Rule::sliding_window(1, Duration::from_millis(500)));
    assert_eq!(admitted(&limiter, &policy).await.decided_by(), DecidedBy::Backend);
    let waiting = tokio::spawn({
        let (limiter, policy) = (limiter.clone(), policy.clone());
        async move { limiter.acquire(&policy, subject()).await.unwrap().decided_by() }
    });
    server.kill();
    until_decided_by(&limiter, DecidedBy::Standby).await;
    assert_eq!(waiting.await.unwrap(), DecidedBy::Standby);
}

#[tokio::test]
async fn the_overrides_that_are_known_hold_in_an_outage() {
    let (mut server, limiter) = with_server(OnOutage::Local);
    let policy = policy(hourly(2));
    let overridden = |count| limiter.override_policy("on.outage").rules([hourly(count)]).allow_unknown();
    overridden(4).set().await.unwrap();
    server.kill();
    until_decided_by(&limiter, DecidedBy::Standby).await;
    assert_eq!(room(&limiter, &policy).await, 4);
    server.restart();
    until_decided_by(&limiter, DecidedBy::Backend).await;
    overridden(0).set().await.unwrap();
    server.kill();
    until_decided_by(&limiter, DecidedBy::Standby).await;
    assert_eq!(denied(&limiter, &policy).await.retry_after(), None, "the limit is closed");
    let report = check(&limiter, &policy).report().await.unwrap();
    assert!(!report.is_allowed() && report.report().len() == 1);
    server.restart();
}

#[tokio::test]
async fn a_call_that_waits_for_the_overrides_is_decided_at_its_deadline() {
    let (server, limiter) = with_server(OnOutage::Local);
    let policy = builder(hourly(1)).deadline(Duration::from_millis(30)).build().unwrap();
    // The connection is there, and the overrides were never read.
    limiter.ping().await.unwrap();
    server.pause();
    assert_eq!(admitted(&limiter, &policy).await.decided_by(), DecidedBy::Standby);
    server.resume();
}

#[tokio::test]
async fn in_a_known_outage_calls_are_decided_at_once() {
    let (limiter, policy) = (one_of(1), policy(hourly(1_000_000)));
    let mut at_once = 0;
    for _ in 0..1_000 {
        match check(&limiter, &policy).into_future().now_or_never() {
            Some(decided) => {
                assert_eq!(decided.unwrap().decided_by(), DecidedBy::Standby);
                at_once += 1;
            }
            // Now and then a call finds out whether the outage goes on.
            None => assert!(call(&limiter, &policy).await.is_allowed()),
        }
    }
    assert!(at_once > 100, "{at_once} of a thousand");
}

#[tokio::test]
async fn windows_of_the_standby_go_by_the_clock_of_this_process() {
    let clock = ManualClock::new(time(START_US));
    let limiter = away(|builder| builder.clock(&clock));
    let policy = policy(hourly(2));
    for _ in 0..3 {
        assert_eq!(room(&limiter, &policy).await, 2);
        assert_eq!(denied(&limiter, &policy).await.retry_after(), Some(HOUR));
        clock.advance(HOUR);
    }
}
