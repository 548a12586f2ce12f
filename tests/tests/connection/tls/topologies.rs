//! Sentinels and clusters behind encrypted connections: all of their servers are reached by TLS, and none is trusted that no
//! known authority vouches for.

use std::time::Duration;

use tallygate::{ErrorKind, Limiter, LimiterBuilder, Policy, Rule, Subject, Tls};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::sentinels::{NAME, Sentinels, named_by};
use tallygate_harness::server::{connected, patient, refused};
use tallygate_harness::tls::{Authority, OWN, TlsProxy};
use tallygate_harness::until::{until, until_found};

fn policy() -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(3_600))).build().unwrap()
}

async fn assert_decides(limiter: &Limiter, subject: &str) {
    let subject = Subject::of(subject);
    assert!(limiter.check(&policy(), &subject).await.unwrap().is_allowed());
    assert!(!limiter.check(&policy(), &subject).await.unwrap().is_allowed());
}

fn trusting(authority: &Authority) -> LimiterBuilder {
    patient().tls(Tls::new().ca(authority.pem()))
}

/// Asserts that a limiter that knows only this authority refuses what is there, and names it and the remedy.
async fn assert_refused(url: &str, authority: &Authority) {
    let error = refused(&trusting(authority), url).await;
    assert_eq!(error.kind(), ErrorKind::Backend);
    for word in ["`url`", "127.0.0.1", "UnknownIssuer", "`Tls::ca`"] {
        assert!(error.to_string().contains(word), "`{word}` is missing in: {error}");
    }
}

/// A primary and its replica behind proxies that encrypt, and sentinels that name the proxies.
struct TlsSentinels {
    all: Sentinels,
    /// In front of the primary and its replica, of which the first in each pair encrypts.
    _servers: [(TlsProxy, Proxy); 2],
    sentinels: Vec<TlsProxy>,
}

impl TlsSentinels {
    /// Starts them with certificates of an authority for the sentinels, and of another for the servers.
    async fn start(of_sentinels: &Authority, of_servers: &Authority) -> Self {
        Self::start_named(of_sentinels, of_servers, OWN).await
    }

    /// The same, where the certificates of the servers are for that host.
    async fn start_named(of_sentinels: &Authority, of_servers: &Authority, host: &str) -> Self {
        let proxies = [Proxy::start(0).await, Proxy::start(0).await];
        // Servers and sentinels do not encrypt among themselves.
        let [primary, replica] =
            proxies.each_ref().map(|proxy| TlsProxy::start_for_both(proxy.port(), of_servers, host));
        let encrypting = [primary.await, replica.await];
        let ports = encrypting.each_ref().map(TlsProxy::port);
        let all = Sentinels::start_announcing(ports, &proxies);
        let mut sentinels = Vec::new();
        for sentinel in all.sentinels() {
            sentinels.push(TlsProxy::start(sentinel.port(), of_sentinels).await);
        }
        let [first, second] = encrypting;
        let [behind_first, behind_second] = proxies;
        Self { all, _servers: [(first, behind_first), (second, behind_second)], sentinels }
    }

    fn url(&self) -> String {
        let url = Sentinels::url_of(self.sentinels.iter().map(TlsProxy::port));
        url.replace("redis+", "rediss+")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_primary_that_sentinels_name_is_followed_by_tls() {
    let authority = Authority::new("ours");
    let servers = TlsSentinels::start(&authority, &authority).await;
    let limiter = connected(&trusting(&authority), &servers.url()).await;
    assert_decides(&limiter, "before").await;
    assert!(servers.all.primary().calls("evalsha") > 0);

    servers.all.fail_over();
    until("a sentinel names the new primary", || servers.all.any_names_replica()).await;
    until("the old primary follows the new one", || servers.all.has_handed_over()).await;
    assert_decides(&limiter, "after").await;
    assert!(servers.all.replica().calls("evalsha") > 0, "the new primary decides");
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_and_primaries_of_another_authority_are_refused() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let servers = TlsSentinels::start(&ours, &other).await;
    // Either the sentinels are not trusted, or the primary that they name is not.
    assert_refused(&servers.url(), &other).await;
    assert_refused(&servers.url(), &ours).await;
    assert_eq!(servers.all.primary().calls("evalsha"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_is_named_by_an_address_needs_a_certificate_for_that_or_a_name() {
    let authority = Authority::new("ours");
    let servers = TlsSentinels::start_named(&authority, &authority, "localhost").await;
    let error = refused(&trusting(&authority), &servers.url()).await.to_string();
    for words in ["not valid for name", "the sentinels name this host", "`sentinel announce-hostnames yes`"] {
        assert!(error.contains(words), "`{words}` is missing in: {error}");
    }
    // What the error says to do.
    for sentinel in servers.all.sentinels() {
        let port = named_by(sentinel);
        sentinel.ask::<()>("SENTINEL CONFIG SET resolve-hostnames yes");
        sentinel.ask::<()>("SENTINEL CONFIG SET announce-hostnames yes");
        sentinel.ask::<()>(&format!("SENTINEL REMOVE {NAME}"));
        sentinel.ask::<()>(&format!("SENTINEL MONITOR {NAME} localhost {port} 2"));
    }
    assert_decides(&connected(&trusting(&authority), &servers.url()).await, "s").await;
}

/// A cluster whose nodes are behind proxies that encrypt.
struct TlsCluster {
    all: Cluster,
    proxies: [Proxy; 3],
    encrypting: [TlsProxy; 3],
}

impl TlsCluster {
    async fn start(authority: &Authority) -> Self {
        Self::start_named(authority, OWN).await
    }

    /// Starts a cluster with certificates for that host.
    async fn start_named(authority: &Authority, host: &str) -> Self {
        let proxies = [Proxy::start(0).await, Proxy::start(0).await, Proxy::start(0).await];
        let [a, b, c] = proxies.each_ref().map(|proxy| TlsProxy::start_named(proxy.port(), authority, host));
        let encrypting = [a.await, b.await, c.await];
        let all = Cluster::start_announcing(encrypting.each_ref().map(TlsProxy::port), &proxies);
        Self { all, proxies, encrypting }
    }

    /// The URL with one node, from which the others are found.
    fn url(&self) -> String {
        self.url_at(OWN)
    }

    /// The URL with one node, at that name of its host.
    fn url_at(&self, host: &str) -> String {
        format!("rediss+cluster://{host}:{}/", self.encrypting[0].port())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_of_a_cluster_are_reached_by_tls() {
    let authority = Authority::new("ours");
    let cluster = TlsCluster::start(&authority).await;
    let limiter = connected(&trusting(&authority), &cluster.url()).await;
    for subject in 0..20 {
        assert_decides(&limiter, &subject.to_string()).await;
    }
    assert!(cluster.all.masters().iter().all(|master| master.calls("evalsha") > 0));
    assert!(cluster.proxies.iter().all(|proxy| proxy.accepted() > 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_another_authority_is_refused() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let cluster = TlsCluster::start(&ours).await;
    assert_refused(&cluster.url(), &other).await;
    assert!(cluster.all.masters().iter().all(|master| master.calls("evalsha") == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_announce_addresses_need_certificates_for_these_or_announce_names() {
    let authority = Authority::new("ours");
    let cluster = TlsCluster::start_named(&authority, "localhost").await;
    let builder = trusting(&authority);
    let of_url = refused(&builder, &cluster.url()).await.to_string();
    assert!(of_url.contains("write a host that the certificate names") && !of_url.contains("announce"), "{of_url}");
    let url = cluster.url_at("localhost");
    let error = refused(&builder, &url).await.to_string();
    for words in ["not valid for name", "the nodes announce this host", "`cluster-announce-hostname`"] {
        assert!(error.contains(words), "`{words}` is missing in: {error}");
    }
    // What the error says to do. Redis 6 can announce no name.
    for node in cluster.all.nodes() {
        if node.try_ask::<()>("CONFIG SET cluster-announce-hostname localhost").is_err() {
            return;
        }
        node.ask::<()>("CONFIG SET cluster-preferred-endpoint-type hostname");
    }
    until_found("all nodes know the names", async || builder.clone().connect(&url).await.is_ok()).await;
    let limiter = connected(&builder, &url).await;
    let decides = async |subject: u8| limiter.check(&policy(), &Subject::of(subject)).await.is_ok();
    for subject in 0..20 {
        until_found("each node is reached by its name", async || decides(subject).await).await;
    }
}
