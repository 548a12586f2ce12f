//! What processes that share a server see of each other's overrides.

use std::time::{Duration, Instant};

use tallygate::{Ban, Policy, RejectionKind, Rule, Subject};
use tallygate_harness::log::Log;
use tallygate_harness::punctuality::Punctuality;
use tallygate_harness::server::Server;

use super::{HOUR, allowed, clear, denied, hourly, override_for, override_rules, policy, room, subject, until};

#[tokio::test]
async fn every_process_adopts_an_override_while_it_decides() {
    let server = Server::start();
    let admin = server.limiter().await;
    let worker = server.limiter().await;
    let policy = policy(1_000_000);
    assert!(allowed(&worker, &policy).await);
    override_rules(&admin, [hourly(0)]).await;
    until(async || !allowed(&worker, &policy).await).await;
    clear(&admin).await;
    until(async || allowed(&worker, &policy).await).await;
}

#[tokio::test]
async fn an_override_reaches_another_process_within_two_seconds() {
    let server = Server::start();
    let admin = server.limiter().await;
    let worker = server.limiter().await;
    let policy = policy(1_000_000);
    assert!(allowed(&worker, &policy).await);
    override_rules(&admin, [hourly(0)]).await;
    let (machine, overridden) = (Punctuality::watch(), Instant::now());
    until(async || !allowed(&worker, &policy).await).await;
    let took = overridden.elapsed();
    assert!(took < Duration::from_secs(2) + machine.lateness(), "{took:?}");
}

#[tokio::test]
async fn an_override_for_one_subject_survives_the_restart_of_a_process() {
    let server = Server::start();
    let policy = policy(5);
    let vip = Subject::of("user").and("vip:1");
    override_for(&server.limiter().await, &vip, 100).await.unwrap();
    let restarted = server.limiter().await;
    assert_eq!(room(&restarted, &policy, &vip).await, 100);
    assert_eq!(room(&restarted, &policy, &subject()).await, 5);
}

#[tokio::test]
async fn a_process_that_has_decided_nothing_resets_and_bans_by_the_rules_in_force() {
    let server = Server::start();
    let policy = Policy::builder("over.ride").rule(hourly(5)).ban(Ban::new(9, HOUR, HOUR)).build().unwrap();
    let subject = subject();
    let new = || server.limiter();
    // Another structure has a tally of its own.
    override_rules(&new().await, [Rule::fixed_window(2, HOUR)]).await;
    assert_eq!(room(&new().await, &policy, &subject).await, 2);
    new().await.check(&policy, &subject).reset().await.unwrap();
    assert_eq!(room(&new().await, &policy, &subject).await, 2);
    new().await.check(&policy, &subject).reset_all().await.unwrap();
    assert_eq!(room(&new().await, &policy, &subject).await, 2);
    new().await.check(&policy, &subject).ban(HOUR).await.unwrap();
    assert_eq!(denied(&new().await, &policy).await.kind(), RejectionKind::Banned);
    new().await.check(&policy, &subject).unban().await.unwrap();
    assert_eq!(denied(&new().await, &policy).await.kind(), RejectionKind::Limited);
}

#[tokio::test]
async fn a_reset_that_cannot_know_the_rules_in_force_says_so() {
    let server = Server::start();
    let (limiter, policy) = (server.limiter().await, policy(1));
    assert!(allowed(&limiter, &policy).await);
    server.ask::<()>("SET tallygate:!overrides x");
    let error = limiter.check(&policy, &subject()).reset().await.unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    assert!(allowed(&limiter, &policy).await, "what is known is reset all the same");
}

#[tokio::test]
async fn an_override_is_in_force_from_the_first_call_of_a_process_and_has_no_end() {
    let server = Server::start();
    override_rules(&server.limiter().await, [hourly(2)]).await;
    let restarted = server.limiter().await;
    assert_eq!(room(&restarted, &policy(5), &subject()).await, 2);
    assert_eq!(server.ask::<i64>("TTL tallygate:!overrides"), -1);
    assert_eq!(server.ask::<String>("HGET tallygate:!overrides over.ride"), "2 per 1h");
}

#[tokio::test]
async fn an_override_is_cleared_for_every_process_or_for_none() {
    let server = Server::start();
    let limiter = server.limiter().await;
    override_rules(&limiter, [hourly(0)]).await;
    // Other processes notice a change by its version. Without that, nothing may change.
    server.ask::<()>("ACL SETUSER default -hset");
    limiter.override_policy("over.ride").clear().await.unwrap_err();
    assert_eq!(server.ask::<Option<String>>("HGET tallygate:!overrides over.ride").as_deref(), Some("0 per 1h"));
    server.ask::<()>("ACL SETUSER default +hset");
    clear(&limiter).await;
    assert_eq!(server.ask::<Option<String>>("HGET tallygate:!overrides over.ride"), None);
}

#[tokio::test]
async fn an_unreadable_override_is_reported_and_ignored() {
    let server = Server::start();
    let mut hset = redis::cmd("HSET");
    hset.arg("tallygate:!overrides").arg("!version").arg("x");
    // The second is the form of an earlier version; the fourth has an end that no process can know.
    let texts = ["everything", "1;w 100 3600000000", "100 per hour", "100 per 1h for 2h", "100 per 1h until noon", ""];
    for (number, text) in texts.iter().enumerate() {
        hset.arg(format!("over.ride:vip{number}")).arg(text);
    }
    hset.arg("over.ride")
        .arg("1 per 1h, 2 per 1h")
        .arg("over ride")
        .arg("0 per 1h")
        .arg("over.ride=net:vip\u{e9}")
        .arg("0 per 1h");
    hset.exec(&mut server.connection()).unwrap();
    let (log, _listening) = Log::listen();
    let limiter = server.limiter().await;
    assert_eq!(room(&limiter, &policy(5), &subject()).await, 5, "its own rules hold");
    for number in 0..texts.len() {
        assert_eq!(room(&limiter, &policy(5), &Subject::of(format!("vip{number}"))).await, 5, "its own rules hold");
    }
    let lines = log.lines();
    let ignored: Vec<_> = lines.iter().filter(|line| line.contains("cannot be read and is ignored")).collect();
    assert_eq!(ignored.len(), texts.len() + 3, "{ignored:?}");
    assert!(ignored.iter().all(|line| line.contains("WARN") && line.contains("policy=") && !line.contains("vip")));
    assert!(limiter.overrides().await.unwrap().is_empty());
    limiter.override_policy("over.ride").subject(&Subject::of("vip0")).clear().await.unwrap();
    assert_eq!(server.ask::<Option<String>>("HGET tallygate:!overrides over.ride:vip0"), None);
}

#[tokio::test]
async fn the_last_known_overrides_stay_in_force_when_they_cannot_be_read() {
    let server = Server::start();
    let (log, _listening) = Log::listen();
    let limiter = server.limiter().await;
    override_rules(&limiter, [hourly(0)]).await;
    override_for(&limiter, &Subject::of("other"), 1_000_000).await.unwrap();
    server.ask::<()>("ACL SETUSER default -hget");
    let policy = policy(5);
    let other = Subject::of("other");
    until(async || {
        assert!(!allowed(&limiter, &policy).await, "the limit stays closed");
        assert!(limiter.check(&policy, &other).await.unwrap().is_allowed(), "decisions go on");
        log.lines().iter().any(|line| line.contains("overrides cannot be read"))
    })
    .await;
    server.ask::<()>("ACL SETUSER default +hget");
    server.ask::<()>("DEL tallygate:!overrides");
    until(async || allowed(&limiter, &policy).await).await;
}

#[tokio::test]
async fn programs_without_overrides_ask_for_them_about_once_a_second() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let policy = policy(1_000_000);
    let started = Instant::now();
    for _ in 0..2_000 {
        assert!(allowed(&limiter, &policy).await);
    }
    let seconds = usize::try_from(started.elapsed().as_secs()).unwrap();
    assert!(server.calls("hget") <= seconds + 2, "{} in {seconds}s", server.calls("hget"));
    assert_eq!(server.calls("hgetall"), 0);
}
