//! What processes that share a server see of each other's overrides.

use std::time::{Duration, Instant};

use tallygate::Subject;
use tallygate_tests::log::Log;
use tallygate_tests::server::Server;
use tokio::time::sleep;

use super::{allowed, hourly, override_rules, policy, room, subject, until};

#[tokio::test]
async fn every_process_takes_an_override_up_while_it_decides() {
    let server = Server::start();
    let (admin, worker, policy) = (server.limiter().await, server.limiter().await, policy(1_000_000));
    assert!(allowed(&worker, &policy).await);
    override_rules(&admin, 0).await;
    until(async || !allowed(&worker, &policy).await).await;
    admin.clear_override("over.ride").await.unwrap();
    until(async || allowed(&worker, &policy).await).await;
}

#[tokio::test]
async fn an_override_reaches_another_process_within_two_seconds() {
    let server = Server::start();
    let (admin, worker, policy) = (server.limiter().await, server.limiter().await, policy(1_000_000));
    assert!(allowed(&worker, &policy).await);
    override_rules(&admin, 0).await;
    let overridden = Instant::now();
    while allowed(&worker, &policy).await {
        assert!(overridden.elapsed() < Duration::from_secs(2), "it is still not taken up");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_override_for_one_subject_survives_the_restart_of_a_process() {
    let server = Server::start();
    let (policy, vip) = (policy(5), Subject::of("user").and("vip:1"));
    server.limiter().await.override_rules_for("over.ride", &vip, [hourly(100)]).await.unwrap();
    let restarted = server.limiter().await;
    assert_eq!(room(&restarted, &policy, &vip).await, 100);
    assert_eq!(room(&restarted, &policy, &subject()).await, 5);
}

#[tokio::test]
async fn an_override_is_in_force_from_the_first_call_of_a_process_and_has_no_end() {
    let server = Server::start();
    override_rules(&server.limiter().await, 2).await;
    let restarted = server.limiter().await;
    assert_eq!(room(&restarted, &policy(5), &subject()).await, 2);
    assert_eq!(server.ask::<i64>("TTL tallygate:!overrides"), -1);
    assert_eq!(server.ask::<String>("HGET tallygate:!overrides over.ride"), "1;w 2 3600000000");
}

#[tokio::test]
async fn an_override_is_cleared_for_every_process_or_for_none() {
    let server = Server::start();
    let limiter = server.limiter().await;
    override_rules(&limiter, 0).await;
    // Others are told of a change by its version. Without that, nothing may change.
    server.ask::<()>("ACL SETUSER default -hset");
    limiter.clear_override("over.ride").await.unwrap_err();
    assert_eq!(
        server.ask::<Option<String>>("HGET tallygate:!overrides over.ride").as_deref(),
        Some("1;w 0 3600000000")
    );
    server.ask::<()>("ACL SETUSER default +hset");
    limiter.clear_override("over.ride").await.unwrap();
    assert_eq!(server.ask::<Option<String>>("HGET tallygate:!overrides over.ride"), None);
}

#[tokio::test]
async fn an_unreadable_override_is_told_and_ignored() {
    let server = Server::start();
    server.ask::<()>("HSET tallygate:!overrides over.ride 9;everything !version x over.ride:vip 1;w,1");
    let (log, _listening) = Log::listen();
    let limiter = server.limiter().await;
    assert_eq!(room(&limiter, &policy(5), &subject()).await, 5, "its own rules hold");
    let told: Vec<_> = log.lines().into_iter().filter(|line| line.contains("cannot be read and is ignored")).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|line| line.contains("WARN") && line.contains("over.ride") && !line.contains("vip")));
}

#[tokio::test]
async fn the_last_known_overrides_stay_in_force_when_they_cannot_be_read() {
    let server = Server::start();
    let (log, _listening) = Log::listen();
    let limiter = server.limiter().await;
    override_rules(&limiter, 0).await;
    limiter.override_rules_for("over.ride", &Subject::of("other"), [hourly(1_000_000)]).await.unwrap();
    server.ask::<()>("ACL SETUSER default -hget");
    let (policy, other) = (policy(5), Subject::of("other"));
    until(async || {
        assert!(!allowed(&limiter, &policy).await, "the door stays closed");
        assert!(limiter.check(&policy, &other).await.unwrap().is_allowed(), "decisions go on");
        log.lines().iter().any(|line| line.contains("overrides cannot be read"))
    })
    .await;
    server.ask::<()>("ACL SETUSER default +hget");
    server.ask::<()>("DEL tallygate:!overrides");
    until(async || allowed(&limiter, &policy).await).await;
}

#[tokio::test]
async fn there_are_no_more_overrides_than_a_process_takes_up() {
    let server = Server::start();
    let limiter = server.limiter().await;
    override_rules(&limiter, 0).await;
    let mut hset = redis::cmd("HSET");
    hset.arg("tallygate:!overrides");
    for number in 0..9_999 {
        hset.arg(format!("over.ride:user:{number}")).arg("1;w 7 3600000000");
    }
    hset.exec(&mut server.connection()).unwrap();
    let refused = limiter.override_rules_for("over.ride", &subject(), [hourly(1)]).await.unwrap_err();
    assert!(refused.to_string().contains("there are 10000 overrides already"), "{refused}");
    override_rules(&limiter, 1).await;
    limiter.clear_override("over.ride").await.unwrap();
    let somebody = Subject::of("user").and(9_998);
    assert_eq!(room(&limiter, &policy(3), &somebody).await, 7, "all of them were taken up");
    server.ask::<()>("HSET tallygate:!overrides a 1;w,1 b 1;w,1 !version many");
    let (log, _listening) = Log::listen();
    until(async || {
        assert!(!limiter.check(&policy(3), &somebody).await.unwrap().is_allowed());
        log.lines().iter().any(|line| line.contains("too many overrides"))
    })
    .await;
    assert_eq!(room(&limiter, &policy(3), &Subject::of("user").and(9_997)).await, 7, "the last known ones hold");
}

#[tokio::test]
async fn programs_without_overrides_ask_for_them_about_once_a_second() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let (policy, started) = (policy(1_000_000), std::time::Instant::now());
    for _ in 0..2_000 {
        assert!(allowed(&limiter, &policy).await);
    }
    let seconds = usize::try_from(started.elapsed().as_secs()).unwrap();
    assert!(server.calls("hget") <= seconds + 2, "{} in {seconds}s", server.calls("hget"));
    assert_eq!(server.calls("hgetall"), 0);
}
