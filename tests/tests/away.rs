//! While Redis is away, calls are refused at once, and the connection is repaired in the background. Some of these tests
//! pause their clock, which this process remembers for good: so they need one of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::time::{Duration, Instant};

use tallygate::{BackendErrorKind, Limiter, Rejection, RejectionKind, rate_limit};
use tallygate_harness::fake::Fake;
use tallygate_harness::log::Log;
use tallygate_harness::outage::{DEADLINE, GRACE, PATIENCE, alone, limited, limiter};
use tallygate_harness::proxy::Proxy;
use tallygate_harness::punctuality::Punctuality;
use tallygate_harness::server::{Server, connected, free_port, patient};
use tokio::runtime::{Builder, Handle};
use tokio::time::{sleep, timeout};

async fn rejected(limiter: &Limiter) {
    assert_eq!(limited(limiter).await.unwrap_err().kind(), RejectionKind::Unavailable);
}

/// Waits until that holds, without calling.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let held = async {
        while !holds() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(PATIENCE, held).await.unwrap_or_else(|_| panic!("{what}"));
}

async fn recovered(limiter: &Limiter) {
    let recovery = async {
        while limited(limiter).await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, recovery).await.expect("the limiter recovers by itself");
}

/// Awaits something that takes at most that long. A busy machine adds to it.
async fn within<T>(bound: Duration, what: impl Future<Output = T>) -> T {
    let machine = Punctuality::watch();
    let begun = Instant::now();
    let output = what.await;
    let (took, late) = (begun.elapsed(), machine.lateness());
    assert!(took <= bound + GRACE + late, "it took {took:?}; the machine was late by {late:?}");
    output
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_server_hangs_one_call_waits_and_the_others_are_refused_at_once() {
    let _alone = alone().await;
    let server = Server::start();
    let limiter = limiter(&server.url());
    recovered(&limiter).await;
    server.pause();
    within(DEADLINE, rejected(&limiter)).await;
    // Longer than an attempt to connect takes, so some of the calls meet one.
    for _ in 0..15 {
        let calls = async {
            for _ in 0..100 {
                rejected(&limiter).await;
            }
        };
        within(Duration::ZERO, calls).await;
        sleep(Duration::from_millis(100)).await;
    }
    server.resume();
    recovered(&limiter).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_limited_steps_of_one_request_wait_for_one_deadline_together() {
    #[rate_limit(name = "away.second", limiter = limiter, rule(count = 1_000_000, per = "1h"))]
    async fn second(limiter: &Limiter) -> Result<(), Rejection> {
        Ok(())
    }
    let _alone = alone().await;
    let server = Server::start();
    let limiter = limiter(&server.url());
    recovered(&limiter).await;
    server.pause();
    let request = async { (limited(&limiter).await.is_err(), second(&limiter).await.is_err()) };
    assert_eq!(within(DEADLINE, request).await, (true, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_deadline_finds_a_silent_connection_too() {
    let _alone = alone().await;
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let limiter =
        Limiter::builder().deadline(Duration::from_millis(20)).registry(false).connect_lazy(proxy.url()).unwrap();
    for _ in 0..3 {
        recovered(&limiter).await;
        proxy.swallow();
        rejected(&limiter).await;
    }
    recovered(&limiter).await;
}

#[tokio::test]
async fn an_outage_is_over_without_any_call_and_the_log_says_when_it_began_and_ended() {
    let (log, _listening) = Log::listen();
    let said = |words: &str| log.lines().iter().filter(|line| line.contains(words)).count();
    let mut server = Server::start();
    let limiter = patient().connect_lazy(server.url()).unwrap();
    limited(&limiter).await.unwrap();
    for outage in 1..=2 {
        server.kill();
        until("the outage is noticed", || said("redis is away; calls go by `on_outage` until it is back") == outage)
            .await;
        rejected(&limiter).await;
        server.restart();
        until("the connection is repaired", || said("connected to redis") == outage + 1).await;
        limited(&limiter).await.unwrap();
        assert_eq!(said("redis is back"), outage);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_is_replaced_without_any_call() {
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let limiter = connected(&patient(), &proxy.url()).await;
    for connections in 2..=5 {
        limited(&limiter).await.unwrap();
        proxy.cut();
        until("the connection is replaced", || proxy.accepted() == connections).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_is_attempted_once_at_a_time() {
    let _alone = alone().await;
    let fake = Fake::start().await;
    let limiter = limiter(&fake.url());
    let callers: Vec<_> = (0..1_000)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                loop {
                    rejected(&limiter).await;
                    sleep(Duration::from_millis(10)).await;
                }
            })
        })
        .collect();
    until("the limiter keeps trying", || fake.accepted() >= 3).await;
    callers.iter().for_each(tokio::task::JoinHandle::abort);
    // The server may notice the end of one attempt after the begin of the next.
    assert!(fake.most_open() <= 2, "{} at once", fake.most_open());
}

#[tokio::test]
async fn a_caller_that_tries_again_at_once_keeps_the_repair_from_nothing() {
    let mut server = Server::start();
    let limiter = limiter(&server.url());
    recovered(&limiter).await;
    server.kill();
    rejected(&limiter).await;
    server.restart();
    let begun = Instant::now();
    while limited(&limiter).await.is_err() {
        assert!(begun.elapsed() < PATIENCE, "the limiter recovers by itself");
    }
}

#[test]
fn a_runtime_that_runs_for_single_calls_repairs_the_connection_meanwhile() {
    let mut server = Server::start();
    let limiter = limiter(&server.url());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(recovered(&limiter));
    server.kill();
    let begun = Instant::now();
    while runtime.block_on(limited(&limiter)).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "the server is gone");
    }
    server.restart();
    while runtime.block_on(limited(&limiter)).is_err() {
        assert!(begun.elapsed() < PATIENCE, "the limiter recovers by itself");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limiter_that_is_dropped_leaves_no_task_behind() {
    let server = Server::start();
    for url in [server.url(), format!("redis://127.0.0.1:{}/", free_port())] {
        let limiter = limiter(&url);
        let _ = limited(&limiter).await;
        drop(limiter);
        until("all tasks end", || Handle::current().metrics().num_alive_tasks() == 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_repair_keeps_no_paused_clock_from_moving() {
    let limiter = limiter(&format!("redis://127.0.0.1:{}/", free_port()));
    for _ in 0..3 {
        rejected(&limiter).await;
        timeout(PATIENCE * 1_000, sleep(Duration::from_secs(3_600))).await.unwrap();
    }
}

mod ping {
    use super::*;

    #[tokio::test]
    async fn it_succeeds_where_calls_are_decided() {
        let server = Server::start();
        Limiter::in_memory().ping().await.unwrap();
        let limiter = server.limiter().await;
        limiter.ping().await.unwrap();
        assert_eq!(server.ask::<usize>("DBSIZE"), 0, "nothing is stored");
    }

    /// Asks until the answer is that.
    async fn until_ping(limiter: &Limiter, is_ok: bool) {
        let answered = async {
            while limiter.ping().await.is_ok() != is_ok {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, answered).await.expect("the answer changes");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn it_fails_in_time_while_the_server_is_away_and_succeeds_when_it_is_back() {
        let _alone = alone().await;
        let mut server = Server::start();
        let limiter = limiter(&server.url());
        until_ping(&limiter, true).await;
        server.pause();
        let error = within(DEADLINE, limiter.ping()).await.unwrap_err();
        assert_eq!(error.kind(), BackendErrorKind::Away);
        within(Duration::ZERO, limiter.ping()).await.unwrap_err();
        server.resume();
        until_ping(&limiter, true).await;
        server.kill();
        until_ping(&limiter, false).await;
        server.restart();
        until_ping(&limiter, true).await;
    }

    #[tokio::test]
    async fn it_finds_a_server_that_may_not_write() {
        let (primary, replica) = (Server::start(), Server::start());
        let limiter = replica.limiter().await;
        replica.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
        let error = limiter.ping().await.unwrap_err();
        assert!(error.to_string().contains("READONLY"), "{error}");
    }

    #[test]
    fn it_needs_a_runtime_for_redis_only() {
        use futures_util::FutureExt as _;
        Limiter::in_memory().ping().now_or_never().unwrap().unwrap();
        let error = limiter("redis://127.0.0.1/").ping().now_or_never().unwrap().unwrap_err();
        assert!(error.to_string().contains("tokio runtime"), "{error}");
    }
}
