//! Encrypted connections: who is trusted, and what an error says to do.

mod topologies;

use std::time::Duration;

use tallygate::{ErrorKind, Limiter, LimiterBuilder, Policy, Rule, Subject, Tls};
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::{Server, connected, free_port, patient, refused};
use tallygate_harness::tls::{Authority, Clients, Identity, TlsServer};
use tallygate_harness::until::until_found;

fn policy() -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(3_600))).build().unwrap()
}

async fn assert_decides(limiter: &Limiter, subject: &str) {
    let subject = Subject::of(subject);
    assert!(limiter.check(&policy(), &subject).await.unwrap().is_allowed());
    assert!(!limiter.check(&policy(), &subject).await.unwrap().is_allowed());
}

fn with_ca(authority: &Authority) -> Tls {
    Tls::new().ca(authority.pem())
}

fn with_certificate(tls: Tls, identity: &Identity) -> Tls {
    tls.client_certificate(identity.certificate.as_str(), identity.key.as_str())
}

async fn assert_refused(tls: Tls, url: &str, words: &[&str]) {
    let error = refused(&patient().tls(tls), url).await;
    assert_eq!(error.kind(), ErrorKind::Backend);
    for word in words {
        assert!(error.to_string().contains(word), "`{word}` is missing in: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_authority_is_known_is_trusted() {
    let authority = Authority::new("ours");
    let server = TlsServer::start(&authority, Clients::Anybody).await;
    let limiter = connected(&patient().tls(with_ca(&authority)), &server.url()).await;
    assert_decides(&limiter, "by address").await;
    let url = format!("rediss://localhost:{}/3", server.port());
    let limiter = connected(&patient().tls(with_ca(&authority)), &url).await;
    assert_decides(&limiter, "by name").await;
    assert_eq!(server.server().ask::<String>("INFO keyspace").matches("keys=1").count(), 2, "one in each database");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_authority_is_refused() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let server = TlsServer::start(&ours, Clients::Anybody).await;
    let words = ["`url`", "127.0.0.1", "UnknownIssuer", "`Tls::ca`"];
    assert_refused(with_ca(&other), &server.url(), &words).await;
    // The system does not know it either.
    assert_refused(Tls::new(), &server.url(), &words).await;
    let error = refused(&patient(), &server.url()).await;
    assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_host_is_refused() {
    let authority = Authority::new("ours");
    let identity = authority.issue(&["redis.example.com"]);
    let server = TlsServer::start_as(&authority, identity, Clients::Anybody).await;
    let words = ["not valid for name", "redis.example.com", "write a host that the certificate names"];
    assert_refused(with_ca(&authority), &server.url(), &words).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_certificate_is_accepted_only_where_the_danger_is_named() {
    let authority = Authority::new("ours");
    let identity = authority.issue(&["redis.example.com"]);
    let server = TlsServer::start_as(&authority, identity, Clients::Anybody).await;
    let limiter = connected(&patient().tls(Tls::new().danger_accept_any_certificate()), &server.url()).await;
    assert_decides(&limiter, "s").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_a_certificate_gets_the_one_of_the_client() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let server = TlsServer::start(&ours, Clients::WithCertificate).await;
    let own = with_certificate(with_ca(&ours), &ours.issue(&["tallygate"]));
    assert_decides(&connected(&patient().tls(own), &server.url()).await, "s").await;

    assert_refused(with_ca(&ours), &server.url(), &["CertificateRequired", "`Tls::client_certificate`"]).await;
    let foreign = with_certificate(with_ca(&ours), &other.issue(&["tallygate"]));
    let words = ["does not accept the certificate of `Tls::client_certificate`"];
    assert_refused(foreign, &server.url(), &words).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_time_or_kind_is_an_error_that_says_what_to_do() {
    let authority = Authority::new("ours");
    let names = ["127.0.0.1", "localhost"];
    for (identity, words) in [
        (authority.issue_expired(&names), "the certificate has expired: let its authority issue another one"),
        (authority.issue_for_later(&names), "the certificate is not valid yet: set the clock of this machine"),
        (authority.issue_authority(&names), "the server needs a certificate for servers"),
        (authority.issue_for_clients(&names), "the server needs a certificate for servers"),
    ] {
        let server = TlsServer::start_as(&authority, identity, Clients::Anybody).await;
        assert_refused(with_ca(&authority), &server.url(), &[words]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_of_the_other_kind_is_an_error_that_says_so() {
    let authority = Authority::new("ours");
    let server = TlsServer::start(&authority, Clients::Anybody).await;
    // A port without TLS is silent until the deadline, and a busy machine may be later than it: then there is another attempt.
    let builder = Limiter::builder().deadline(Duration::from_secs(2));
    let says = async |builder: LimiterBuilder, url: &str, words: &str| {
        let is_said = async || builder.clone().connect(url).await.unwrap_err().to_string().contains(words);
        until_found(words, is_said).await;
    };
    let plain = format!("rediss://127.0.0.1:{}/", server.server().port());
    says(builder.clone().tls(with_ca(&authority)), &plain, "the port speaks without TLS: begin the url with `redis`")
        .await;
    let encrypted = format!("redis://127.0.0.1:{}/", server.port());
    says(builder, &encrypted, "the port is one for TLS: begin the url with `rediss`").await;
    let nobody = format!("rediss://127.0.0.1:{}/", free_port());
    assert_refused(with_ca(&authority), &nobody, &["refused"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_connection_that_is_lost_or_silent_is_replaced() {
    let authority = Authority::new("ours");
    let server = TlsServer::start(&authority, Clients::Anybody).await;
    let proxy = Proxy::start(server.port()).await;
    let url = proxy.url().replace("redis://", "rediss://");
    let builder = Limiter::builder().deadline(Duration::from_millis(250)).tls(with_ca(&authority));
    let limiter = builder.connect_lazy(&url).unwrap();
    for break_it in [Proxy::cut, Proxy::swallow, Proxy::lose_replies] {
        for _ in 0..2 {
            let decides = async || limiter.check(&policy(), &Subject::of("s")).await.is_ok();
            until_found("the connection is replaced", decides).await;
            break_it(&proxy);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_callers_own_brings_its_certificates() {
    let authority = Authority::new("ours");
    let server = TlsServer::start(&authority, Clients::WithCertificate).await;
    let identity = authority.issue(&["tallygate"]);
    let certificates = redis::TlsCertificates {
        client_tls: Some(redis::ClientTlsConfig {
            client_cert: identity.certificate.into_bytes(),
            client_key: identity.key.into_bytes(),
        }),
        root_cert: Some(authority.pem().into_bytes()),
    };
    let client = redis::Client::build_with_tls(server.url(), certificates).unwrap();
    assert_decides(&patient().build_with_client(&client).unwrap(), "s").await;
    let error = patient().tls(Tls::new()).build_with_client(&client).unwrap_err();
    assert!(error.to_string().starts_with("`tls` is set, but the client has settings of its own"), "{error}");
}

#[tokio::test]
async fn mistaken_settings_are_refused_before_anything_is_connected() {
    let authority = Authority::new("ours");
    let (identity, another) = (authority.issue(&["one"]), authority.issue(&["another"]));
    let cut = &authority.pem()[..200];
    let mixed = |certificate: &str, key: &str| Tls::new().client_certificate(certificate, key);
    for (tls, words) in [
        (Tls::new().ca(""), "`ca` that holds no certificate"),
        (Tls::new().ca("ca.pem"), "`ca` that holds no certificate"),
        (Tls::new().ca(cut), "`ca` that holds no certificate"),
        (Tls::new().ca(identity.key.as_str()), "`ca` that holds no certificate"),
        (with_ca(&authority).danger_accept_any_certificate(), "leave `danger_accept_any_certificate` out"),
        (mixed("client.pem", &identity.key), "client certificate that is no PEM"),
        (mixed(&identity.certificate, "client.key"), "no private key that can be read"),
        (mixed(&identity.certificate, &identity.certificate), "no private key that can be read"),
        (mixed(&identity.certificate, &another.key), "does not belong to its private key"),
    ] {
        for url in ["rediss://127.0.0.1/", "memory://"] {
            let error = refused(&patient().tls(tls.clone()), url).await;
            assert_eq!(error.kind(), ErrorKind::Setting);
            let text = error.to_string();
            assert!(text.starts_with("`tls` ") && text.contains(words), "{text}");
            assert!(!text.contains("BEGIN"), "{text}");
        }
    }
    let error = refused(&patient().tls(with_ca(&authority)), &Server::start().url()).await;
    assert_eq!(error.to_string(), "`tls` is set, but `url` does not ask for it; write `rediss://host:port`");
}

#[test]
fn certificates_and_keys_are_not_shown() {
    let authority = Authority::new("ours");
    let tls = with_certificate(with_ca(&authority), &authority.issue(&["tallygate"]));
    assert_eq!(format!("{tls:?}"), "Tls { accepts_any: false, .. }");
    let builder = patient().tls(tls);
    assert!(!format!("{builder:?}").contains("tls"), "{builder:?}");
}
