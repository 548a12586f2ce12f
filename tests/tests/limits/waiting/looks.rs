//! What other processes do is noticed within two seconds, by few requests. Two limiters stand for two processes.

use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tallygate::{Ban, Limiter, OnOutage, Policy, RejectionKind, Rule, Subject};
use tallygate_harness::clocked::{Clocked, new_clock};
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::until_found;
use tokio::task::{JoinHandle, yield_now};

const LOOK: Duration = Duration::from_secs(2);
const HOUR: Duration = Duration::from_secs(3_600);

fn hourly() -> Policy {
    Policy::builder("looks").rule(Rule::sliding_window(1, HOUR)).build().unwrap()
}

/// Starts a call that waits, and returns once it sleeps.
async fn sleeping(limiter: &Limiter, policy: &Policy, subject: &Subject) -> JoinHandle<bool> {
    let call = tokio::spawn({
        let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject.clone());
        async move { limiter.acquire(&policy, &subject).await.unwrap().is_allowed() }
    });
    for _ in 0..10 {
        assert!(!limiter.peek(policy, subject).await.unwrap().is_allowed());
        yield_now().await;
    }
    call
}

#[tokio::test]
async fn room_that_another_process_makes_is_noticed_within_two_seconds() {
    let clocked = Clocked::start();
    // A denial is cached for longer than that.
    let builder = patient().clock(clocked.clock()).denial_cache(Duration::from_secs(10));
    let limiters = [connected(&builder, &clocked.server().url()).await, clocked.limiter().await];
    let subject = Subject::of("alice");
    for number in 0..4 {
        let name = format!("looks.{number}");
        let policy = Policy::builder(name.clone()).rule(Rule::sliding_window(1, HOUR)).build().unwrap();
        let overriding = || limiters[1].override_policy(name.clone()).allow_unknown();
        let refundable = limiters[1].check(&policy, &subject).refundable().await.unwrap().into_result().unwrap();
        let call = sleeping(&limiters[0], &policy, &subject).await;
        match number {
            0 => _ = limiters[1].check(&policy, &subject).reset().await.unwrap(),
            1 => assert!(refundable.refund().await.unwrap()),
            2 => overriding().text("2 per 1h").set().await.unwrap(),
            _ => overriding().text("3 per 1h").subject(&subject).set().await.unwrap(),
        }
        assert!(!call.is_finished());
        clocked.advance(LOOK);
        // Overrides are read once a second, by the clock of this machine.
        until_found("the caller is admitted", async || {
            clocked.advance(if number < 2 { Duration::ZERO } else { LOOK });
            call.is_finished()
        })
        .await;
        assert!(call.await.unwrap(), "{number}");
    }
}

#[tokio::test]
async fn looking_counts_no_denial() {
    let clocked = Clocked::start();
    let limiter = clocked.limiter().await;
    let policy = Policy::builder("looks").rule(Rule::sliding_window(1, HOUR)).ban(Ban::new(3, HOUR, HOUR));
    let (policy, subject) = (policy.build().unwrap(), Subject::of("alice"));
    assert!(limiter.check(&policy, &subject).await.unwrap().is_allowed());
    let call = sleeping(&limiter, &policy, &subject).await;
    for _ in 0..10 {
        let before = clocked.server().calls("evalsha");
        until_found("the caller has looked", async || {
            clocked.advance(LOOK);
            clocked.server().calls("evalsha") > before
        })
        .await;
    }
    let denial = limiter.check(&policy, &subject).await.unwrap().into_result().map(drop).unwrap_err();
    assert_eq!(denial.kind(), RejectionKind::Limited);
    call.abort();
}

#[tokio::test]
async fn callers_of_many_queues_look_together() {
    let clocked = Clocked::start();
    let (limiter, policy) = (clocked.limiter().await, hourly());
    let subjects: Vec<_> = (0..500).map(Subject::of).collect();
    for subject in &subjects {
        assert!(limiter.check(&policy, subject).await.unwrap().is_allowed());
    }
    let mut calls = pin!(join_all(subjects.iter().map(|subject| limiter.acquire(&policy, subject).into_future())));
    for _ in 0..100 {
        assert!(calls.as_mut().now_or_never().is_none());
        assert!(!limiter.peek(&policy, &subjects[0]).await.unwrap().is_allowed());
    }
    clocked.server().ask::<()>("CONFIG RESETSTAT");
    clocked.server().ask::<()>("FLUSHALL");
    clocked.advance(LOOK);
    assert!(calls.await.iter().all(|decision| decision.as_ref().unwrap().is_allowed()));
    let asked = clocked.server().calls("evalsha");
    assert!(asked < subjects.len() / 4, "{asked} calls for {} callers", subjects.len());
}

#[tokio::test]
async fn an_outage_while_a_caller_only_looks_does_not_end_its_wait() {
    let (mut server, clock) = (Server::start(), new_clock());
    let limiter = connected(&patient().clock(&clock).on_outage(OnOutage::Deny), &server.url()).await;
    let (policy, subject) = (hourly(), Subject::of("alice"));
    assert!(limiter.check(&policy, &subject).await.unwrap().is_allowed());
    let call = sleeping(&limiter, &policy, &subject).await;
    server.kill();
    until_found("redis is away", async || limiter.check(&policy, &subject).peek().await.is_err()).await;
    for _ in 0..3 {
        clock.advance(LOOK);
        until_found("redis is away", async || limiter.check(&policy, &subject).peek().await.is_err()).await;
        assert!(!call.is_finished());
    }
    // It has lost its state.
    server.restart();
    until_found("the caller has found room", async || {
        clock.advance(LOOK);
        call.is_finished()
    })
    .await;
    assert!(call.await.unwrap());
}
