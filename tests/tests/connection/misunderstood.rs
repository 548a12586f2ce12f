//! Servers that hang up on the client library, or that it does not understand: an error says what their bytes show, and advises
//! nothing that they do not show.

use std::net::SocketAddr;
use std::time::Duration;

use tallygate::{BackendErrorKind, Limiter, OnOutage, Policy, Rule, Subject};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::sentinels::Sentinels;
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::until_found;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What a port does with a connection.
#[derive(Clone, Copy)]
enum Port {
    HangsUp,
    SpeaksHttp,
    SpeaksHtml,
    SaysNonsense,
    /// Answers `PING`, and hangs up on whatever else it is told, as twemproxy does.
    KnowsOnlyPing,
}

impl Port {
    async fn open(self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(self.serve(stream));
            }
        });
        address
    }

    async fn serve(self, mut stream: TcpStream) {
        let answer: &[u8] = match self {
            Self::HangsUp => return,
            Self::SpeaksHttp => b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n",
            Self::SpeaksHtml => b"<!DOCTYPE HTML>\n<html></html>\n",
            Self::SaysNonsense => b"220 mail.example.org ready\r\n",
            Self::KnowsOnlyPing => {
                let mut bytes = [0; 512];
                while let Ok(length) = stream.read(&mut bytes).await
                    && bytes[..length].starts_with(b"*1\r\n$4\r\nPING\r\n")
                {
                    let _ = stream.write_all(b"+PONG\r\n").await;
                }
                return;
            }
        };
        let _ = stream.read(&mut [0; 512]).await;
        let _ = stream.write_all(answer).await;
    }
}

/// Why a limiter cannot connect there.
async fn error_at(url: &str) -> tallygate::BackendError {
    let limiter = patient().connect_lazy(url).unwrap();
    error_of(&limiter).await
}

async fn error_of(limiter: &Limiter) -> tallygate::BackendError {
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
    limiter.check(&policy, &Subject::of("s")).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_without_redis_is_recognized_by_its_bytes() {
    for (port, kind, words) in [
        (Port::HangsUp, BackendErrorKind::Away, ""),
        (Port::SpeaksHttp, BackendErrorKind::Wrong, "an HTTP server answers there: check the port"),
        (Port::SpeaksHtml, BackendErrorKind::Wrong, "an HTTP server answers there: check the port"),
        (Port::SaysNonsense, BackendErrorKind::Wrong, "does not speak the protocol of Redis; check host and port"),
        (Port::KnowsOnlyPing, BackendErrorKind::Wrong, "hangs up on `HELLO`, as twemproxy does"),
    ] {
        let address = port.open().await;
        let error = error_at(&format!("redis://{address}/")).await;
        assert!(error.kind() == kind && error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains(&address.to_string()) && !error.to_string().contains("TLS"), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_hangs_up_on_the_greeting_decides_no_call_also_not_where_outages_allow_it() {
    let url = format!("redis://{}/", Port::KnowsOnlyPing.open().await);
    let error = Limiter::connect(&url).await.unwrap_err().to_string();
    assert!(error.contains("connect to the server behind it"), "{error}");
    let limiter = patient().connect_lazy(&url).unwrap();
    for on_outage in [OnOutage::Local, OnOutage::Allow, OnOutage::Deny] {
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).on_outage(on_outage);
        let policy = policy.build().unwrap();
        for _ in 0..20 {
            let error = limiter.check(&policy, &Subject::of("s")).await.unwrap_err().to_string();
            assert!(error.contains("connect to the server behind it"), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_killed_is_not_taken_for_one_with_tls() {
    let mut server = Server::start();
    let limiter = connected(&patient(), &server.url()).await;
    server.kill();
    for _ in 0..20 {
        let error = error_of(&limiter).await;
        assert!(error.kind() == BackendErrorKind::Away && !error.to_string().contains("TLS"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_says_so_and_takes_calls_when_there_is_room() {
    let (server, others) = Server::start_full();
    let limiter = patient().connect_lazy(server.url()).unwrap();
    for _ in 0..20 {
        let error = error_of(&limiter).await.to_string();
        assert!(
            error.contains("max number of clients reached; raise `maxclients`") && !error.contains("TLS"),
            "{error}"
        );
    }
    drop(others);
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
    until_found("the server has room", async || limiter.check(&policy, &Subject::of("s")).await.is_ok()).await;
}

/// Asserts that a limiter waits for servers that stand still while it connects.
async fn assert_waits(url: &str, servers: &[&Server]) {
    for server in servers {
        server.pause();
    }
    let builder = Limiter::builder().deadline(Duration::from_secs(60));
    let mut connecting = Box::pin(builder.connect(url));
    let early = tokio::time::timeout(Duration::from_millis(2_500), &mut connecting).await;
    assert!(early.is_err(), "it gave up: {early:?}");
    for server in servers {
        server.resume();
    }
    drop(connecting.await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_lasts_as_long_as_callers_wait() {
    let server = Server::start();
    assert_waits(&server.url(), &[&server]).await;
    let cluster = Cluster::start();
    assert_waits(&cluster.url(), &cluster.masters().iter().collect::<Vec<_>>()).await;
    let sentinels = Sentinels::start();
    assert_waits(&sentinels.url(), &sentinels.sentinels().iter().collect::<Vec<_>>()).await;
}
