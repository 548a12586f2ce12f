//! What an error says to do fits what was seen: which server refuses, by whose login, and which servers were asked.

use std::net::TcpListener;
use std::time::Duration;

use tallygate::{BackendErrorKind, Limiter, Policy, Rule, Subject};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::sentinels::{NAME, Sentinels};
use tallygate_harness::server::{Server, connected, free_port, patient, refused};
use tallygate_harness::until::until_found;

const PUT: &str = "put user and password into the url";
const CHECK: &str = "check user and password in the url";

/// The url with that password.
fn with_password(url: &str, password: &str) -> String {
    url.replace("://", &format!("://:{password}@"))
}

async fn assert_refused(url: &str, words: &[&str], without: &[&str]) {
    let error = refused(&patient(), url).await.to_string();
    assert!(words.iter().all(|words| error.contains(words)), "{words:?}: {error}");
    assert!(!without.iter().any(|words| error.contains(words)), "without {without:?}: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_asked_for_only_where_there_is_none() {
    let (server, node) = (Server::start_with(&["--requirepass", "one"]), Server::start_node(&["--requirepass", "one"]));
    for url in [server.url(), Cluster::url_of([node.port()])] {
        assert_refused(&url, &["redis at 127.0.0.1:", "NOAUTH", PUT], &[CHECK]).await;
        assert_refused(&with_password(&url, "another"), &["redis at 127.0.0.1:", "WRONGPASS", CHECK], &[PUT]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_that_refuses_the_login_of_the_url_says_that() {
    let watching = format!("sentinel auth-pass {NAME} one");
    let options = ["--requirepass", "one", "--masterauth", "one"];
    let servers = Sentinels::start_with(&options, &["--requirepass", "another"], &[&watching]);
    assert_refused(&servers.url(), &["NOAUTH", "the sentinel wants a login", PUT], &[CHECK]).await;
    let of_primary = ["WRONGPASS", CHECK, "a sentinel gets those of the primary, so set the same there, or none"];
    assert_refused(&with_password(&servers.url(), "one"), &of_primary, &[PUT]).await;
    let of_sentinels = with_password(&servers.url(), "another");
    let port = servers.primary().port().to_string();
    assert_refused(&of_sentinels, &["WRONGPASS", &port, "they are those of the primary"], &[PUT]).await;
    // What the error says to do.
    servers.sentinels().iter().for_each(|sentinel| sentinel.ask::<()>("ACL SETUSER default resetpass >one"));
    drop(connected(&patient(), &with_password(&servers.url(), "one")).await);
}

/// Calls until the error has these words.
async fn assert_said(limiter: &Limiter, words: &[&str]) {
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap();
    let is_said = async || {
        let error = limiter.check(&policy, &Subject::of("s")).await.expect_err("nobody is there");
        assert_eq!(error.kind(), BackendErrorKind::Away, "{error}");
        words.iter().all(|words| error.to_string().contains(words))
    };
    until_found("the error names all of them", is_said).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_sentinels_of_which_none_answers_are_named() {
    let builder = Limiter::builder().deadline(Duration::from_millis(250));
    let silent = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let silent = silent.each_ref().map(|listener| listener.local_addr().unwrap().port());
    for ports in [[free_port(), free_port()], silent] {
        let hosts = ports.map(|port| format!("127.0.0.1:{port}"));
        let hosts = hosts.each_ref().map(String::as_str);
        for url in [Cluster::url_of(ports), Sentinels::url_of(ports)] {
            let error = builder.clone().connect(&url).await.unwrap_err().to_string();
            assert!(hosts.iter().all(|host| error.contains(host)), "{error}");
            assert_said(&builder.clone().connect_lazy(&url).unwrap(), &hosts).await;
        }
    }
}
