//! Redis fails in every way that a test can make it fail: each call is answered in time, and the limiter recovers by
//! itself.

mod storms;

use std::time::{Duration, Instant};

use tallygate::{Limiter, Rejection, RejectionKind};
use tallygate_harness::outage::{DEADLINE, GRACE, PATIENCE, alone, limited, limiter};
use tallygate_harness::proxy::Proxy;
use tallygate_harness::punctuality::Punctuality;
use tallygate_harness::server::{Server, connected, free_port, key_of, patient};
use tallygate_harness::stored;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Calls once. The answer has to come in time.
async fn call(limiter: &Limiter) -> Result<(), Rejection> {
    let machine = Punctuality::watch();
    let asked = Instant::now();
    let answer = limited(limiter).await;
    assert_in_time(asked.elapsed(), machine.lateness());
    answer
}

fn assert_in_time(took: Duration, machine_late: Duration) {
    assert!(took <= DEADLINE + GRACE + machine_late, "a call took {took:?}; the machine was late by {machine_late:?}");
}

async fn rejected(limiter: &Limiter) {
    let rejection = call(limiter).await.expect_err("the server cannot decide this call");
    assert_eq!(rejection.kind(), RejectionKind::Unavailable);
    assert_eq!((rejection.policy(), rejection.retry_after()), ("outage", None));
}

/// Calls until a call is admitted, and returns how many were rejected. Each is answered in time.
async fn recovered(limiter: &Limiter) -> usize {
    let recovery = async {
        let mut rejections = 0;
        while let Err(rejection) = call(limiter).await {
            assert_eq!(rejection.kind(), RejectionKind::Unavailable);
            rejections += 1;
            sleep(Duration::from_millis(5)).await;
        }
        rejections
    };
    timeout(PATIENCE, recovery).await.expect("the limiter recovers by itself")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_at_start_is_found_once_it_is_up() {
    let _alone = alone().await;
    let port = free_port();
    let limiter = limiter(&format!("redis://127.0.0.1:{port}/"));
    for _ in 0..20 {
        rejected(&limiter).await;
    }
    let _server = Server::start_on(port);
    recovered(&limiter).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_is_found_again_once_it_is_back() {
    let _alone = alone().await;
    let mut server = Server::start();
    let limiter = limiter(&server.url());
    for _ in 0..3 {
        recovered(&limiter).await;
        server.kill();
        for _ in 0..10 {
            rejected(&limiter).await;
        }
        server.restart();
    }
    recovered(&limiter).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_answering_is_asked_again_once_it_continues() {
    let _alone = alone().await;
    let server = Server::start();
    let limiter = limiter(&server.url());
    for _ in 0..2 {
        recovered(&limiter).await;
        server.pause();
        for _ in 0..6 {
            rejected(&limiter).await;
        }
        server.resume();
    }
    recovered(&limiter).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_at_start_is_found_once_it_does() {
    let _alone = alone().await;
    let server = Server::start();
    server.pause();
    let limiter = limiter(&server.url());
    for _ in 0..6 {
        rejected(&limiter).await;
    }
    server.resume();
    recovered(&limiter).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_callers_at_once_are_all_answered_in_time() {
    let _alone = alone().await;
    let server = Server::start();
    let limiter = limiter(&server.url());
    recovered(&limiter).await;
    server.pause();
    let machine = Punctuality::watch();
    let mut calls = JoinSet::new();
    for _ in 0..1_000 {
        let limiter = limiter.clone();
        calls.spawn(async move {
            let asked = Instant::now();
            let answer = limited(&limiter).await;
            (asked.elapsed(), answer)
        });
    }
    let answers = calls.join_all().await;
    let machine_late = machine.lateness();
    for (took, answer) in answers {
        assert_in_time(took, machine_late);
        assert_eq!(answer.unwrap_err().kind(), RejectionKind::Unavailable);
    }
    server.resume();
    recovered(&limiter).await;
    let stats: String = server.ask("INFO stats");
    let connections = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap();
    assert!(connections.parse::<u32>().unwrap() < 20, "callers share their attempts to connect: {connections}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_fell_silent_is_replaced() {
    let _alone = alone().await;
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let limiter = limiter(&proxy.url());
    recovered(&limiter).await;
    for _ in 0..3 {
        proxy.swallow();
        rejected(&limiter).await;
        recovered(&limiter).await;
    }
}

/// Cuts the connection and calls until a call is admitted. At most the first one finds the connection lost.
async fn assert_replaced_at_once(limiter: &Limiter, proxy: &Proxy) {
    proxy.cut();
    if limited(limiter).await.is_err() {
        limited(limiter).await.expect("the second call has a new connection");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_was_cut_is_replaced_at_once() {
    let _alone = alone().await;
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let limiter = patient().connect_lazy(proxy.url()).unwrap();
    limited(&limiter).await.unwrap();
    // Within what may be attempted in a second.
    for _ in 0..8 {
        assert_replaced_at_once(&limiter, &proxy).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_was_cut_before_its_first_call_is_replaced_at_once() {
    let _alone = alone().await;
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let limiter = connected(&patient(), &proxy.url()).await;
    assert_replaced_at_once(&limiter, &proxy).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_reply_is_lost_counts_once() {
    let _alone = alone().await;
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let limiter = limiter(&proxy.url());
    let (mut calls, mut admitted) = (0, 0);
    for _ in 0..5 {
        calls += recovered(&limiter).await + 1;
        admitted += 1;
        proxy.lose_replies();
        rejected(&limiter).await;
        calls += 1;
    }
    let key = key_of(&mut server.connection(), "outage", "s");
    let counted = stored::calls(&server.ask::<Vec<u8>>(&format!("GET {key}"))).len();
    assert!(admitted < counted && counted <= calls, "{admitted} admitted, {counted} counted, {calls} calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_demoted_is_replaced_by_the_new_primary() {
    let _alone = alone().await;
    let (old, new) = (Server::start(), Server::start());
    let proxy = Proxy::start(old.port()).await;
    let limiter = limiter(&proxy.url());
    recovered(&limiter).await;
    // The old server keeps its connections, and refuses to write.
    old.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", new.port()));
    proxy.point_to(new.port());
    rejected(&limiter).await;
    recovered(&limiter).await;
}

#[test]
fn a_connection_of_a_runtime_that_is_gone_is_replaced_on_the_next() {
    let server = Server::start();
    let limiter = patient().connect_lazy(server.url()).unwrap();
    // More than may be attempted in a second: a runtime that ends is no failure of the server.
    for builder in [Builder::new_multi_thread, Builder::new_current_thread].into_iter().cycle().take(25) {
        let runtime = builder().enable_all().build().unwrap();
        let _alone = runtime.block_on(alone());
        assert!(runtime.block_on(call(&limiter)).is_ok(), "the first call on a new runtime is decided");
    }
}

#[test]
fn a_runtime_that_ends_while_it_connects_blocks_no_other() {
    let server = Server::start();
    let limiter = limiter(&server.url());
    let (first, second) = (Runtime::new().unwrap(), Runtime::new().unwrap());
    let _alone = second.block_on(alone());
    server.pause();
    first.block_on(rejected(&limiter));
    server.resume();
    drop(first);
    second.block_on(recovered(&limiter));
}

#[test]
fn runtimes_that_stand_still_in_the_middle_of_a_call_hold_up_no_other() {
    let server = Server::start();
    let limiter = limiter(&server.url());
    let moving = Runtime::new().unwrap();
    let _alone = moving.block_on(alone());
    moving.block_on(recovered(&limiter));
    server.pause();
    let still: Vec<_> = (0..4).map(|_| Builder::new_current_thread().enable_all().build().unwrap()).collect();
    for runtime in &still {
        let given_up = runtime.block_on(async { timeout(Duration::from_millis(10), limited(&limiter)).await });
        // On a busy machine, the library gives up first.
        assert!(!given_up.is_ok_and(|decided| decided.is_ok()));
    }
    server.resume();
    moving.block_on(recovered(&limiter));
}
