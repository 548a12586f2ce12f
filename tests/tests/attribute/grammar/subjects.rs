//! A rule may count another subject than its policy.

use std::net::IpAddr;
use std::time::Duration;

use tallygate::{Limiter, Rejection, RejectionKind, rate_limit};
use tallygate_harness::server::Server;
use tokio::time::advance;

use crate::grammar::{Runs, denial};

#[rate_limit(
    key = "sms:{phone}",
    rule(count = 2, per = "1h"),
    rule(count = 3, per = "1h", key = "{ip:subnet}", message = "too many numbers from {ip}"),
    rule(count = 4, per = "1d", key = "{ip:subnet}"),
    rule(count = 6, per = "1h", key = "all"),
    limiter = limiter
)]
async fn send(phone: &str, ip: IpAddr, limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

async fn per_phone_per_network_and_together(limiter: &Limiter) {
    let runs = Runs::default();
    let (here, there) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
    let position = |result| denial::<u32>(result).rule().unwrap().position();
    send("1", here, limiter, &runs).await.unwrap();
    send("1", here, limiter, &runs).await.unwrap();
    // Denied by the phone, and so counted neither for the network nor for all.
    assert_eq!(position(send("1", here, limiter, &runs).await), 0);
    send("2", here, limiter, &runs).await.unwrap();
    let rejection = denial(send("3", here, limiter, &runs).await);
    assert_eq!(
        (rejection.rule().unwrap().position(), rejection.to_string().as_str()),
        (1, "too many numbers from 10.0.0.1")
    );
    for phone in ["3", "3", "4"] {
        send(phone, there, limiter, &runs).await.unwrap();
    }
    assert_eq!(position(send("5", IpAddr::from([10, 0, 0, 3]), limiter, &runs).await), 3);
    assert_eq!(runs.0.get(), 6);
}

#[tokio::test(start_paused = true)]
async fn subjects_are_decided_as_one() {
    per_phone_per_network_and_together(&Limiter::in_memory()).await;
}

#[tokio::test]
async fn subjects_are_decided_as_one_on_redis_by_one_command() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let commands = || server.calls("evalsha") + server.calls("eval");
    let before = commands();
    per_phone_per_network_and_together(&limiter).await;
    assert!(commands() - before <= 10);
}

#[rate_limit(
    key = "{user}",
    rule(count = 9, per = "1h"),
    prevent_duplicate(key = "{user}:{order}", per = "30s", message = "{order} is paid"),
    limiter = limiter
)]
async fn pay(user: &str, order: u32, limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_may_be_recognised_by_another_key() {
    let limiter = Limiter::in_memory();
    pay("a", 1, &limiter).await.unwrap();
    pay("a", 2, &limiter).await.unwrap();
    let rejection = denial(pay("a", 1, &limiter).await);
    assert_eq!((rejection.kind(), rejection.to_string().as_str()), (RejectionKind::Duplicate, "1 is paid"));
    advance(Duration::from_secs(30)).await;
    pay("a", 1, &limiter).await.unwrap();
}

#[rate_limit(
    rule(count = 1, per = "1h", key = "a:{a}"),
    rule(count = calls, per = "1h", key = "b:{b}"),
    cost = 1,
    wait = "1ms",
    refund_if = |result| result.as_ref().is_ok_and(|ran| *ran > 3),
    limiter = limiter
)]
async fn apart(a: u8, b: u8, calls: u64, limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

#[tokio::test(start_paused = true)]
async fn every_rule_may_have_a_key_of_its_own() {
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    apart(1, 1, 2, &limiter, &runs).await.unwrap();
    assert_eq!(denial(apart(1, 2, 2, &limiter, &runs).await).rule().unwrap().position(), 0);
    apart(2, 1, 2, &limiter, &runs).await.unwrap();
    let second = denial(apart(3, 1, 2, &limiter, &runs).await);
    assert_eq!((second.rule().unwrap().position(), second.rule().unwrap().count()), (1, 2));
    apart(3, 1, 3, &limiter, &runs).await.unwrap();
    // Given back for both subjects.
    assert_eq!(apart(4, 2, 2, &limiter, &runs).await.unwrap(), 4);
    assert_eq!(apart(4, 2, 1, &limiter, &runs).await.unwrap(), 5);
}

#[rate_limit(key = "{user}", rule(count = 2, per = "1h", key = "{user}"), rule(count = 5, per = "1d"), limiter = limiter)]
async fn alike(user: &str, limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(
    rule(count = 1, per = "1s", key = "{ip}"),
    key = "{user}",
    ban(denials = 2, within = "1m", duration = "1h"),
    limiter = limiter
)]
async fn banned(user: &str, ip: &str, limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_key_may_be_said_again_and_a_ban_is_on_the_subject_of_the_policy() {
    let limiter = Limiter::in_memory();
    alike("a", &limiter).await.unwrap();
    alike("a", &limiter).await.unwrap();
    assert_eq!(denial(alike("a", &limiter).await).rule().unwrap().position(), 0);
    banned("a", "1", &limiter).await.unwrap();
    for _ in 0..2 {
        assert_eq!(denial(banned("a", "1", &limiter).await).kind(), RejectionKind::Limited);
    }
    assert_eq!(denial(banned("a", "2", &limiter).await).kind(), RejectionKind::Banned);
    banned("b", "2", &limiter).await.unwrap();
}
