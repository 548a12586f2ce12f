//! A server with which no connection lasts is not stormed with attempts to make one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tallygate::{Limiter, RejectionKind};
use tallygate_harness::fake::Fake;
use tallygate_harness::outage::{PATIENCE, alone, limited, limiter};
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::Server;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::recovered;

/// Lets 1,000 callers call until that many connections have been attempted. Each of their calls is rejected.
///
/// Checks that there were at most ten attempts in any second since then, however fast the machine is.
async fn assert_no_storm(limiter: &Limiter, attempts: impl AsyncFn() -> u64) {
    const ENOUGH: u64 = 15;
    let before = attempts().await;
    let started = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..1_000 {
        let limiter = limiter.clone();
        callers.spawn(async move {
            loop {
                assert_eq!(limited(&limiter).await.unwrap_err().kind(), RejectionKind::Unavailable);
                sleep(Duration::from_millis(10)).await;
            }
        });
    }
    let attempted = async {
        while attempts().await - before < ENOUGH && callers.try_join_next().is_none() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, attempted).await.expect("the limiter keeps trying");
    let attempts = attempts().await - before;
    let most = 10 * (started.elapsed().as_secs() + 1);
    assert!(attempts <= most, "{attempts} attempts in {:?}", started.elapsed());
    assert_eq!(callers.len(), 1_000, "no caller was admitted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_up_at_once_is_not_stormed() {
    let _alone = alone().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let limiter = limiter(&format!("redis://{}/", listener.local_addr().unwrap()));
    let attempts = Arc::new(AtomicU64::new(0));
    tokio::spawn({
        let attempts = Arc::clone(&attempts);
        async move {
            while let Ok((socket, _)) = listener.accept().await {
                drop(socket);
                attempts.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    assert_no_storm(&limiter, async || attempts.load(Ordering::Relaxed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_each_greeting_is_not_stormed() {
    let _alone = alone().await;
    for error in ["ERR max number of clients reached", "WRONGPASS invalid username-password pair"] {
        let fake = Fake::start().await;
        fake.greet_with(error);
        assert_no_storm(&limiter(&fake.url()), async || fake.accepted() as u64).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_greets_and_then_hangs_up_is_not_stormed() {
    let _alone = alone().await;
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let limiter = limiter(&proxy.url());
    proxy.close_at_scripts();
    assert_no_storm(&limiter, async || proxy.accepted()).await;
    proxy.pass();
    recovered(&limiter).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_up_after_each_answer_is_not_stormed() {
    let _alone = alone().await;
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let limiter = limiter(&proxy.url());
    let started = Instant::now();
    while proxy.accepted() < 25 {
        recovered(&limiter).await;
        proxy.cut();
    }
    let most = 10 * (started.elapsed().as_secs() + 1);
    assert!(proxy.accepted() <= most, "{} attempts in {:?}", proxy.accepted(), started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_replica_is_not_stormed_and_is_used_once_it_is_promoted() {
    let _alone = alone().await;
    let (primary, replica) = (Server::start(), Server::start());
    replica.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    let proxy = Proxy::start(replica.port()).await;
    let limiter = limiter(&proxy.url());
    assert_no_storm(&limiter, async || proxy.accepted()).await;
    replica.ask::<()>("REPLICAOF NO ONE");
    recovered(&limiter).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limiters_of_one_server_share_the_bound_on_attempts() {
    let _alone = alone().await;
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    proxy.close_at_scripts();
    let limiters: Vec<_> = (0..10).map(|_| limiter(&proxy.url())).collect();
    let started = Instant::now();
    let attempted = async {
        while proxy.accepted() < 45 {
            for limiter in &limiters {
                assert_eq!(limited(limiter).await.unwrap_err().kind(), RejectionKind::Unavailable);
            }
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, attempted).await.expect("the limiters keep trying");
    // The first attempt of each limiter is made in any case.
    let most = 10 * (started.elapsed().as_secs() + 1) + 10;
    assert!(proxy.accepted() <= most, "{} attempts in {:?}", proxy.accepted(), started.elapsed());
    proxy.pass();
    for limiter in &limiters {
        recovered(limiter).await;
    }
}
