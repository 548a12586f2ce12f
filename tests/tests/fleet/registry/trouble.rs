//! What goes wrong with the list never concerns a call.

use std::time::Duration;

use tallygate::Limiter;
use tallygate_harness::log::Log;
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::until_found;

use super::{KEY, call, hourly, listing_limiter, read, store, stored};

const SAID: &str = "could not be listed";

/// Calls until the log says that the list is given up, and some more; returns what it says.
async fn given_up(limiter: &Limiter, log: &Log) -> Vec<String> {
    let policy = hourly("goes.on", 1_000_000);
    let said = || log.lines().into_iter().filter(|line| line.contains(SAID)).collect::<Vec<_>>();
    until_found("the log says it", async || {
        assert!(call(limiter, &policy).await);
        !said().is_empty()
    })
    .await;
    for name in ["another", "a.third"] {
        assert!(call(limiter, &hourly(name, 5)).await);
    }
    said()
}

#[tokio::test]
async fn without_the_permission_calls_go_on_and_the_log_says_so_once() {
    let (log, _listening) = Log::listen();
    let server = Server::start();
    server.ask::<()>("ACL SETUSER reader on >pass ~* +@all -hscan");
    let url = server.url().replace("://", "://reader:pass@");
    let limiter = connected(&patient().registry(true), &url).await;
    let connected = server.calls("eval");
    let said = given_up(&limiter, &log).await;
    assert!(said.len() == 1 && said[0].contains("it is not tried again"), "{said:?}");
    // The script for the list was sent once.
    assert_eq!((server.calls("eval") - connected, stored(&server).len()), (1, 0));
}

#[tokio::test]
async fn a_key_that_holds_something_else_stays_and_calls_go_on() {
    let (log, _listening) = Log::listen();
    let server = Server::start();
    server.ask::<()>(&format!("SET {KEY} precious"));
    let limiter = listing_limiter(&server).await;
    let said = given_up(&limiter, &log).await;
    assert!(said.len() == 1 && said[0].contains("WRONGTYPE"), "{said:?}");
    assert_eq!(server.ask::<String>(&format!("GET {KEY}")), "precious");
    assert!(limiter.registered_policies().await.unwrap_err().to_string().contains("WRONGTYPE"));
}

#[tokio::test]
async fn a_server_that_is_full_for_a_while_gets_the_list_later() {
    let server = Server::start();
    let policy = hourly("full", 1);
    assert!(call(&server.limiter().await, &policy).await);
    let limiter = listing_limiter(&server).await;
    server.ask::<()>("CONFIG SET maxmemory 1");
    // A denial writes nothing, so it is decided.
    for _ in 0..20 {
        assert!(!call(&limiter, &policy).await);
    }
    until_found("an attempt has failed", async || {
        assert!(!call(&limiter, &policy).await);
        server.calls("hscan") > 0
    })
    .await;
    assert_eq!(stored(&server).len(), 0);
    server.ask::<()>("CONFIG SET maxmemory 0");
    until_found("it is listed", async || {
        assert!(!call(&limiter, &policy).await);
        read(&limiter).await.find("full").is_some()
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_away_while_policies_are_listed_fails_no_call_that_it_decides() {
    let mut server = Server::start();
    let limiter = connected(&patient().registry(true).deadline(Duration::from_millis(250)), &server.url()).await;
    let policies = ["one", "two", "three"].map(|name| hourly(name, 1_000_000));
    for policy in &policies {
        let subject = tallygate::Subject::of("s");
        let is_allowed = async || limiter.check(policy, &subject).await.is_ok_and(|decision| decision.is_allowed());
        until_found("calls are decided", is_allowed).await;
        server.kill();
        server.restart();
        until_found("calls are decided again", is_allowed).await;
    }
    // The server has lost what was listed before. Not all processes list it again in the same moment.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    until_found("what was lost is listed again", async || {
        for policy in &policies {
            let _ = limiter.check(policy, &tallygate::Subject::of("s")).await;
        }
        let registered = limiter.registered_policies().await;
        registered.is_ok_and(|registered| policies.iter().all(|policy| registered.find(policy.name()).is_some()))
    })
    .await;
}

#[tokio::test]
async fn an_entry_that_is_longer_than_any_that_is_written_is_not_read() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let long = "x".repeat(5_000);
    store(&server, "long", &format!("1 1\nname long\nrule 0 1 per 1h as {long}"));
    store(&server, &long, "1 7\nname odd");
    let named = "x".repeat(129);
    store(&server, "named", &format!("1 1\nname named\nrule 0 1 per 1h as {named}"));
    let registered = read(&limiter).await;
    let entry = registered.find_unreadable("long").unwrap();
    assert_eq!(entry.reason(), "it has more than 4096 bytes");
    assert!(registered.unreadable().iter().all(|entry| entry.to_string().len() < 1_000));
    let refused = registered.find("named").unwrap().policy().unwrap_err().to_string();
    assert!(refused.contains("`name` of a rule has 128 bytes at most"), "{refused}");
}
