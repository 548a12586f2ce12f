//! A password is in no error, in no line of the log and in no debug output, whatever goes wrong.

use std::error::Error;
use std::fmt::Debug;
use std::net::TcpListener;
use std::time::Duration;

use tallygate::{Limiter, LimiterBuilder, Policy, Rejection, Rule, Subject, Tls};
use tallygate_harness::log::Log;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::{Server, connected, free_port};
use tallygate_harness::tls::{Authority, Clients, TlsServer};

const PASSWORD: &str = "canary-7391";

/// A value of a call, which is shown as little as the password.
const PHONE: &str = "13800000000";

/// Everything that a program can show of what happened.
struct Shown {
    texts: Vec<String>,
    log: Log,
    _listening: tracing::subscriber::DefaultGuard,
}

impl Shown {
    fn new() -> Self {
        let (log, listening) = Log::listen();
        Self { texts: Vec::new(), log, _listening: listening }
    }

    fn value(&mut self, value: &impl Debug) {
        self.texts.push(format!("{value:?} {value:#?}"));
    }

    fn error(&mut self, error: &dyn Error) {
        let mut cause = Some(error);
        while let Some(error) = cause {
            self.texts.push(format!("{error} {error:?} {error:#?}"));
            cause = error.source();
        }
    }

    /// Connects at once and later, calls, and keeps whatever is shown.
    async fn play(&mut self, builder: LimiterBuilder, url: &str) {
        self.value(&builder);
        match builder.clone().connect(url).await {
            Ok(limiter) => self.calls(&limiter).await,
            Err(error) => self.error(&error),
        }
        match builder.connect_lazy(url) {
            Ok(limiter) => self.calls(&limiter).await,
            Err(error) => self.error(&error),
        }
    }

    async fn calls(&mut self, limiter: &Limiter) {
        self.value(limiter);
        let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
        for _ in 0..3 {
            match limiter.check(&policy, &Subject::of(PHONE)).await {
                Ok(decision) => self.value(&decision),
                Err(error) => {
                    self.error(&error);
                    let rejection = Rejection::unavailable("p", error);
                    self.error(&rejection);
                }
            }
        }
    }

    /// Checks that the password and the value were kept back, and that something was shown at all.
    fn assert_kept_back(&self) {
        let texts = self.texts.iter().cloned().chain(self.log.lines());
        let texts: Vec<_> = texts.collect();
        assert!(texts.len() > 3);
        for text in texts {
            assert!(!text.contains(PASSWORD) && !text.contains(PHONE), "{text}");
        }
    }
}

fn builder() -> LimiterBuilder {
    Limiter::builder().deadline(Duration::from_millis(100))
}

fn login(address: &str) -> String {
    format!("redis://alice:{PASSWORD}@{address}/")
}

fn local(port: u16) -> String {
    login(&format!("127.0.0.1:{port}"))
}

#[tokio::test]
async fn an_address_that_cannot_be_read_or_reached_shows_no_password() {
    let mut shown = Shown::new();
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    for url in [
        local(free_port()),
        local(deaf.local_addr().unwrap().port()),
        login("no-such-host.invalid"),
        login("127.0.0.1:70000"),
        login("ho st"),
        login(""),
        login("127.0.0.1").replace("redis", "reddis"),
        login("127.0.0.1").replace("redis", "redis+cluster"),
        login("127.0.0.1") + "zero",
        login("127.0.0.1").replace("alice:", "alice:%"),
        login("127.0.0.1").replace("alice:", "alice:/"),
        format!("redis+unix://alice:{PASSWORD}@/no/such/socket"),
        format!("redis+unix:///no/such/socket?pass={PASSWORD}"),
        format!("redis://127.0.0.1:{PASSWORD}/"),
        format!("redis://127.0.0.1/{PASSWORD}"),
        format!("redis://127.0.0.1?password={PASSWORD}"),
        format!("redis://{PASSWORD}@127.0.0.1:1"),
        format!(":{PASSWORD}@127.0.0.1://"),
    ] {
        shown.play(builder(), &url).await;
    }
    shown.assert_kept_back();
}

#[tokio::test]
async fn a_server_that_refuses_shows_no_password() {
    let mut shown = Shown::new();
    let wrong = Server::start_with(&["--requirepass", "another"]);
    let without = Server::start_with(&["--requirepass", PASSWORD, "--rename-command", "HELLO", ""]);
    let renamed = Server::start_with(&["--rename-command", "EVALSHA", ""]);
    for server in [&wrong, &without, &renamed] {
        shown.play(builder(), &local(server.port())).await;
        shown.play(builder(), &local(server.port()).replace("alice", "")).await;
    }
    let strict = Server::start();
    strict.ask::<()>(&format!("ACL SETUSER alice on >{PASSWORD} ~none:* +hello"));
    shown.play(builder(), &local(strict.port())).await;
    shown.play(builder(), &format!("{}9", local(strict.port()))).await;
    strict.ask::<()>(&format!("ACL SETUSER alice on >{PASSWORD} ~none:* +@all"));
    shown.play(builder(), &local(strict.port())).await;
    shown.assert_kept_back();
}

#[tokio::test]
async fn a_server_that_fails_shows_no_password() {
    let mut shown = Shown::new();
    let mut server = Server::start();
    server.ask::<()>(&format!("ACL SETUSER alice on >{PASSWORD} ~* +@all"));
    let proxy = Proxy::start(server.port()).await;
    let url = proxy.url().replace("redis://", &format!("redis://alice:{PASSWORD}@"));
    let limiter = connected(&builder(), &url).await;
    for break_it in [Proxy::cut, Proxy::swallow, Proxy::lose_replies, Proxy::close_at_scripts, Proxy::pass] {
        shown.calls(&limiter).await;
        break_it(&proxy);
    }
    server.ask::<()>("CONFIG SET maxmemory 1");
    shown.calls(&limiter).await;
    server.kill();
    shown.calls(&limiter).await;
    shown.assert_kept_back();
}

#[tokio::test]
async fn an_encrypted_connection_shows_neither_password_nor_key() {
    let mut shown = Shown::new();
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let server = TlsServer::start(&ours, Clients::WithCertificate).await;
    server.server().ask::<()>(&format!("ACL SETUSER alice on >{PASSWORD} ~* +@all"));
    let (own, foreign) = (ours.issue(&["tallygate"]), other.issue(&["tallygate"]));
    let ca = || Tls::new().ca(ours.pem());
    for tls in [
        Tls::new(),
        ca(),
        ca().client_certificate(own.certificate.as_str(), own.key.as_str()),
        ca().client_certificate(foreign.certificate.as_str(), foreign.key.as_str()),
        ca().client_certificate(foreign.certificate.as_str(), own.key.as_str()),
        Tls::new().danger_accept_any_certificate(),
    ] {
        shown.value(&tls);
        shown.play(builder().tls(tls.clone()), &local(server.port()).replace("redis", "rediss")).await;
        shown.play(builder().tls(tls), &local(server.port())).await;
    }
    let keys = [&own.key, &foreign.key].map(|key| key.lines().nth(1).unwrap().to_owned());
    assert!(shown.texts.iter().chain(&shown.log.lines()).all(|text| !keys.iter().any(|key| text.contains(key))));
    shown.assert_kept_back();
}

#[tokio::test]
async fn a_client_of_the_callers_own_shows_no_password() {
    let mut shown = Shown::new();
    let client = redis::Client::open(local(free_port())).unwrap();
    let limiter = builder().build_with_client(&client).unwrap();
    shown.calls(&limiter).await;
    shown.assert_kept_back();
}
