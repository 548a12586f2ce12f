//! Each kind of address leads to one kind of server. What any other answers decides nothing.

use std::time::Duration;

use tallygate::{BackendErrorKind, DecidedBy, Limiter, OnOutage, Policy, Rule, Subject};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::fake::Fake;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::sentinels::Sentinels;
use tallygate_harness::server::{Server, connected, patient, refused};
use tokio::task::yield_now;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

/// What a replica says.
const REPLICA: &str = "the url has to lead to the primary";
/// What each kind of server says to those who take it for another one.
const NODE: &str = "the server is a node of a cluster: begin the url with `redis+cluster://`";
const SENTINEL: &str = "the server is a sentinel: write `redis+sentinel://host:port/name` with the name of the primary";
const NO_NODE: &str = "the server is not part of a cluster: begin the url with `redis://`";
const NO_SENTINEL: &str = "the server is no sentinel: begin the url with `redis://`";

/// The addresses of a port: of a server, a cluster, and sentinels.
fn urls(port: u16) -> [String; 3] {
    [format!("redis://127.0.0.1:{port}/"), Cluster::url_of([port]), Sentinels::url_of([port])]
}

fn policy() -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(1_000, Duration::from_secs(3_600))).build().unwrap()
}

/// Asserts that connecting fails for that reason, and that no call is admitted for want of a connection.
async fn assert_refused(url: &str, words: &str) {
    let error = refused(&patient(), url).await.to_string();
    assert!(error.starts_with("`url`: redis at 127.0.0.1:") && error.contains(words), "{url}: {error}");
    for on_outage in [OnOutage::Local, OnOutage::Allow] {
        let limiter = patient().on_outage(on_outage).connect_lazy(url).unwrap();
        // The second one may be decided by what is known since the first.
        for _ in 0..2 {
            let error = limiter.check(&policy(), &Subject::of("s")).await.expect_err("a mistake admits no call");
            assert_eq!((error.kind(), error.to_string().contains(words)), (BackendErrorKind::Wrong, true), "{error}");
        }
    }
}

async fn assert_decides(limiter: &Limiter) {
    for subject in 0..30 {
        let decision = limiter.check(&policy(), &Subject::of(subject)).await.unwrap();
        assert_eq!((decision.is_allowed(), decision.decided_by()), (true, DecidedBy::Backend));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_address_is_refused_at_each_other_kind_of_server() {
    let (cluster, sentinels) = (Cluster::shared(), Sentinels::shared());
    // One of them owns the slot of what is asked first.
    for node in cluster.nodes() {
        let [as_server, as_cluster, as_sentinel] = urls(node.port());
        assert_refused(&as_server, NODE).await;
        assert_refused(&as_sentinel, NODE).await;
        drop(connected(&patient(), &as_cluster).await);
    }
    let [as_server, as_cluster, as_sentinel] = urls(sentinels.sentinels()[0].port());
    assert_refused(&as_server, SENTINEL).await;
    assert_refused(&as_cluster, SENTINEL).await;
    assert_decides(&connected(&patient().prefix("modes"), &as_sentinel).await).await;
    for server in [sentinels.primary(), sentinels.replica()] {
        let [_, as_cluster, as_sentinel] = urls(server.port());
        assert_refused(&as_cluster, NO_NODE).await;
        assert_refused(&as_sentinel, NO_SENTINEL).await;
    }
    assert_decides(&connected(&patient().prefix("modes"), &sentinels.primary().url()).await).await;
    let error = refused(&patient(), &sentinels.replica().url()).await.to_string();
    assert!(error.contains(REPLICA), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_takes_writes_decides_nothing() {
    let (primary, replica) = (Server::start(), Server::start());
    replica.ask::<()>("CONFIG SET replica-read-only no");
    replica.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    let error = refused(&patient(), &replica.url()).await.to_string();
    assert!(error.contains(REPLICA), "{error}");
    replica.ask::<()>("REPLICAOF NO ONE");
    assert_decides(&replica.limiter().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_the_place_of_a_node_decides_nothing() {
    let proxies = [Proxy::start(0).await, Proxy::start(0).await, Proxy::start(0).await];
    let _cluster = Cluster::start_behind(&proxies);
    let url = Cluster::url_of(proxies.iter().map(Proxy::port));
    let limiter = connected(&patient().on_outage(OnOutage::Local), &url).await;
    assert_decides(&limiter).await;
    let other = Server::start();
    proxies[1].point_to(other.port());
    proxies[1].cut();
    let policy = policy();
    let refused = async {
        for subject in (0..30).cycle() {
            match limiter.check(&policy, &Subject::of(subject)).await {
                Err(error) if error.to_string().contains(NO_NODE) => return,
                _ => yield_now().await,
            }
        }
    };
    timeout(PATIENCE, refused).await.expect("the server in the place of the node is noticed");
    assert_eq!(other.ask::<u64>("DBSIZE"), 0);
}

#[tokio::test]
async fn a_proxy_that_says_nothing_of_itself_is_served() {
    let fake = Fake::start().await;
    fake.admit();
    assert_decides(&patient().connect_lazy(fake.url()).unwrap()).await;
}
