//! Connections that are killed, and replies that are cut, under load: a call may be counted whose answer is lost, and none
//! is counted twice.

use std::time::Duration;

use tallygate::{Limiter, Subject};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::length::cases;
use tallygate_harness::pressure::{Pressure, assert_stored};
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::{Server, ask, connected};
use tallygate_harness::until::until;

/// Each of them calls as often as it can.
const CALLERS: usize = 48;

fn begin(limiter: &Limiter) -> Pressure {
    Pressure::start(limiter, (0..CALLERS).map(Subject::of))
}

async fn limiter(url: &str) -> Limiter {
    connected(&Limiter::builder().deadline(Duration::from_secs(5)), url).await
}

/// Kills all connections but its own, as often as that. After each few times, some more calls are awaited.
async fn kill_all(servers: &[&Server], pressure: &Pressure, times: usize) {
    let mut connections: Vec<_> = servers.iter().map(|server| server.connection()).collect();
    for number in 0..times {
        let connection = &mut connections[number % servers.len()];
        ask::<u64>(connection, "CLIENT KILL TYPE normal SKIPME yes");
        if number % 8 == 0 {
            let called = pressure.called();
            until("calls go on", || pressure.called() > called).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_kills_its_clients_in_a_loop_counts_no_call_twice() {
    let server = Server::start();
    let limiter = limiter(&server.url()).await;
    let pressure = begin(&limiter);
    pressure.admit(500).await;
    kill_all(&[&server], &pressure, cases(300, 10_000)).await;
    pressure.recover().await;
    assert_stored(&limiter, &pressure.end().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_kills_its_clients_in_a_loop_counts_no_call_twice() {
    let cluster = Cluster::start();
    let limiter = limiter(&cluster.url()).await;
    let pressure = begin(&limiter);
    pressure.admit(500).await;
    let masters: Vec<_> = cluster.masters().iter().collect();
    kill_all(&masters, &pressure, cases(300, 10_000)).await;
    pressure.recover().await;
    assert_stored(&limiter, &pressure.end().await).await;
}

/// Cuts the replies that are on the way. If the connection was just being replaced, the next one is cut.
async fn cut(proxy: &Proxy, calls_fail: impl Fn() -> bool) {
    let mut accepted = None;
    until("calls fail", || {
        let latest = Some(proxy.accepted());
        if accepted != latest {
            accepted = latest;
            proxy.cut_replies();
        }
        calls_fail()
    })
    .await;
}

/// Cuts the replies that are on the way, again and again.
async fn cut_all(proxies: &[Proxy], pressure: &Pressure) {
    for number in 0..cases(30, 1_000) {
        let (failed, admitted) = (pressure.failed(), pressure.admitted());
        cut(&proxies[number % proxies.len()], || pressure.failed() > failed).await;
        until("calls succeed again", || pressure.admitted() > admitted).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_of_a_server_that_are_cut_count_once() {
    let server = Server::start();
    let proxies = [Proxy::start(server.port()).await];
    let limiter = limiter(&proxies[0].url()).await;
    let pressure = begin(&limiter);
    pressure.admit(500).await;
    cut_all(&proxies, &pressure).await;
    pressure.recover().await;
    assert!(assert_stored(&limiter, &pressure.end().await).await > 0, "calls are counted whose replies are cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_of_a_cluster_that_are_cut_count_once() {
    let proxies = [Proxy::start(0).await, Proxy::start(0).await, Proxy::start(0).await];
    let cluster = Cluster::start_behind(&proxies);
    let limiter = limiter(&Cluster::url_of(proxies.iter().map(Proxy::port))).await;
    let pressure = begin(&limiter);
    pressure.admit(500).await;
    cut_all(&proxies, &pressure).await;
    pressure.recover().await;
    assert!(assert_stored(&limiter, &pressure.end().await).await > 0, "calls are counted whose replies are cut");
    drop(cluster);
}
