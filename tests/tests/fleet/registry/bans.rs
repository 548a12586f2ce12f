//! The subjects that are banned, found by a scan.

use std::time::Duration;

use tallygate::{BackendErrorKind, Ban, Limiter, OnOutage, Policy, Rule, Subject};
use tallygate_harness::clocked::new_clock;
use tallygate_harness::cluster::Cluster;
use tallygate_harness::server::{Server, connected, patient};

use super::{HOUR, each_store, hourly};

/// A policy whose subjects are banned for an hour after two denials.
fn banning(name: &'static str) -> Policy {
    let rules = Policy::builder(name).rule(Rule::sliding_window(1, HOUR));
    rules.rule_on("network", Rule::sliding_window(100, HOUR)).ban(Ban::new(2, HOUR, HOUR)).build().unwrap()
}

async fn call(limiter: &Limiter, policy: &Policy, user: u32) {
    let network = Subject::of("n").and(user);
    let _ = limiter.check(policy, &Subject::of("user").and(user)).subject("network", &network).await.unwrap();
}

/// Who is banned, each behind the policy.
async fn banned(limiter: &Limiter, policies: &[&Policy]) -> Vec<String> {
    let mut bans = limiter.bans(policies.iter().copied());
    let mut found = Vec::new();
    while let Some(page) = bans.next_page().await.unwrap() {
        assert!(page.bans().len() <= page.subjects());
        for banned in page.bans() {
            assert!(banned.retry_after().is_some_and(|wait| wait > HOUR / 2 && wait <= 2 * HOUR), "{banned:?}");
            found.push(format!("{} {}", banned.policy(), banned.subject()));
        }
    }
    found.sort();
    found
}

/// Bans every third of thirty subjects under two policies, and lets the others make a call.
async fn ban_every_third(limiter: &Limiter) -> [Policy; 2] {
    let policies = [banning("a"), banning("b")];
    for policy in &policies {
        for user in 0..30 {
            for _ in 0..if user % 3 == 0 { 3 } else { 1 } {
                call(limiter, policy, user).await;
            }
        }
    }
    policies
}

async fn check_found(limiter: &Limiter) {
    let [one, other] = ban_every_third(limiter).await;
    let users = || (0..30).step_by(3);
    let mut expected: Vec<_> =
        users().flat_map(|user| ["a", "b"].map(|policy| format!("{policy} user:{user}"))).collect();
    expected.sort();
    let unbanned = hourly("c", 5);
    assert_eq!(banned(limiter, &[&one, &other, &unbanned]).await, expected);
    assert_eq!(banned(limiter, &[&other]).await.len(), 10);
    assert!(banned(limiter, &[&unbanned]).await.is_empty() && banned(limiter, &[]).await.is_empty());
    let user = Subject::of("user").and(0);
    limiter.check(&one, &user).unban().await.unwrap();
    assert_eq!(banned(limiter, &[&one]).await.len(), 9);
}

#[tokio::test]
async fn who_is_banned_is_found_under_the_policies_that_are_asked_for() {
    let (limiters, _server) = each_store().await;
    for limiter in limiters {
        check_found(&limiter).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_banned_is_found_on_every_node_of_a_cluster() {
    let cluster = Cluster::shared();
    check_found(&connected(&patient().prefix("banned"), &cluster.url()).await).await;
}

#[tokio::test]
async fn a_ban_is_found_in_the_tally_of_an_override() {
    let (limiters, _server) = each_store().await;
    for limiter in limiters {
        let policy = banning("a");
        limiter.override_policy("a").rules([Rule::sliding_window(1, 2 * HOUR)]).set().await.unwrap();
        for _ in 0..3 {
            call(&limiter, &policy, 1).await;
        }
        assert_eq!(banned(&limiter, &[&policy]).await.len(), 1);
        // Its own rules have counted no denial.
        assert!(limiter.override_policy("a").clear().await.unwrap());
        assert!(banned(&limiter, &[&policy]).await.is_empty());
    }
}

#[tokio::test]
async fn an_outage_is_an_error_also_where_calls_are_admitted_meanwhile() {
    let server = Server::start();
    let builder = Limiter::builder().deadline(Duration::from_millis(250)).on_outage(OnOutage::Allow).registry(false);
    let limiter = connected(&builder, &server.url()).await;
    let patient = server.limiter().await;
    let policy = banning("a");
    for _ in 0..3 {
        call(&patient, &policy, 1).await;
    }
    let mut bans = limiter.bans([&policy]);
    server.pause();
    assert_eq!(bans.next_page().await.unwrap_err().kind(), BackendErrorKind::Away);
    server.resume();
    let mut found = 0;
    loop {
        match bans.next_page().await {
            Ok(Some(page)) => found += page.bans().len(),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    assert_eq!(found, 1);
}

#[tokio::test]
async fn a_ban_that_is_over_is_not_found() {
    let policy = banning("a");
    let clock = new_clock();
    let server = Server::start();
    let builder = || patient().clock(&clock);
    for limiter in [builder().build_in_memory().unwrap(), connected(&builder(), &server.url()).await] {
        for (user, duration) in [(1, HOUR / 2), (2, HOUR)] {
            limiter.check(&policy, &Subject::of("user").and(user)).ban(duration).await.unwrap();
        }
        clock.advance(HOUR / 2);
        let mut bans = limiter.bans([&policy]);
        let mut found = Vec::new();
        while let Some(page) = bans.next_page().await.unwrap() {
            found.extend(page.bans().iter().map(|banned| (banned.subject().to_string(), banned.retry_after())));
        }
        assert_eq!(found, [("user:2".to_owned(), Some(HOUR / 2))]);
    }
}
