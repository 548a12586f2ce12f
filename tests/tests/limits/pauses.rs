//! What a pause costs the server.

use std::sync::Arc;
use std::time::Duration;

use tallygate::{Limiter, Policy, Rejection, RejectionKind, Rule, Subject, rate_limit};
use tallygate_harness::clocked::Clocked;
use tallygate_harness::server::{Server, connected, patient};
use tokio::sync::Barrier;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn calls_that_are_sent_together_with_a_paused_one_share_one_more_script_call() {
    let server = Server::start();
    let (told, limiter) =
        (patient().connect(server.url()).await.unwrap(), patient().connect(server.url()).await.unwrap());
    let policy = Policy::builder("p").rule(Rule::sliding_window(9, MINUTE)).pausable().build().unwrap();
    told.check(&policy, &Subject::of(7)).pause(MINUTE).await.unwrap();
    assert!(limiter.check(&policy, &Subject::of("first")).await.unwrap().is_allowed());

    let scripts = || server.calls("evalsha") + server.calls("eval");
    let before = scripts();
    let mut calls = JoinSet::new();
    for number in 0..60 {
        let (limiter, policy) = (limiter.clone(), policy.clone());
        calls.spawn(async move { limiter.check(&policy, &Subject::of(number)).await.unwrap().is_allowed() });
    }
    assert_eq!(calls.join_all().await.into_iter().filter(|is_allowed| *is_allowed).count(), 59);
    let asked = scripts() - before;
    assert!(asked < 12, "{asked} script calls");
}

#[tokio::test]
async fn a_caller_that_the_rules_deny_when_it_is_tried_asks_no_more_until_they_may_have_room() {
    let clocked = Clocked::start();
    let (server, limiter) = (clocked.server(), clocked.limiter().await);
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, MINUTE)).pausable().build().unwrap();
    let subject = Subject::of(7);
    let check = || limiter.check(&policy, &subject);
    assert!(check().await.unwrap().is_allowed());
    check().pause(MINUTE / 6).await.unwrap();
    clocked.clock().advance(MINUTE / 6);
    let scripts = || server.calls("evalsha") + server.calls("eval");
    let before = scripts();
    let waiting = timeout(Duration::from_millis(300), check().wait(MINUTE)).await;
    assert!(waiting.is_err(), "{waiting:?}");
    let asked = scripts() - before;
    assert!(asked < 16, "{asked} script calls");
}

/// How many calls of a process hear of one pause.
const DENIED: usize = 23;

/// The partner denies it once all calls are on their way, and the test has seen that.
#[rate_limit(
    name = "p",
    key = "{account}",
    rule(count = 100, per = "60s"),
    limiter = limiter,
    pause = |answer| answer.as_ref().ok().copied()
)]
async fn denied(limiter: &Limiter, account: &str, together: &Barrier) -> Result<Duration, Rejection> {
    let _ = (limiter, account);
    together.wait().await;
    together.wait().await;
    Ok(MINUTE)
}

/// A limiter that believes its server for longer than a test takes, and has told it of a pause, so that the server knows the script.
async fn told(server: &Server) -> (Limiter, Policy) {
    let limiter = connected(&patient().denial_cache(Duration::from_secs(10)), &server.url()).await;
    let policy = Policy::builder("p").rule(Rule::sliding_window(100, MINUTE)).pausable().build().unwrap();
    limiter.check(&policy, &Subject::of("other")).pause(MINUTE).await.unwrap();
    (limiter, policy)
}

#[tokio::test]
async fn many_results_of_a_function_that_say_the_same_pause_tell_the_server_once() {
    let server = Server::start();
    let (limiter, _) = told(&server).await;
    let together = Arc::new(Barrier::new(DENIED + 1));
    let mut calls = JoinSet::new();
    for _ in 0..DENIED {
        let (limiter, together) = (limiter.clone(), Arc::clone(&together));
        calls.spawn(async move { denied(&limiter, "a", &together).await });
    }
    together.wait().await;
    let before = server.calls("evalsha");
    together.wait().await;
    for answer in calls.join_all().await {
        assert_eq!(answer.unwrap(), MINUTE);
    }
    assert_eq!(server.calls("evalsha") - before, 1);
    assert_eq!(denied(&limiter, "a", &Barrier::new(1)).await.unwrap_err().kind(), RejectionKind::Paused);
}

#[tokio::test]
async fn many_permits_that_say_the_same_pause_tell_the_server_once() {
    let server = Server::start();
    let (limiter, policy) = told(&server).await;
    for is_blocking in [false, true] {
        let subject = Subject::of(is_blocking);
        let mut permits = Vec::new();
        for _ in 0..DENIED {
            permits.push(limiter.check(&policy, &subject).await.unwrap().into_result().unwrap());
        }
        let before = server.calls("evalsha");
        for permit in permits {
            if is_blocking {
                spawn_blocking(move || permit.blocking_pause(MINUTE)).await.unwrap().unwrap();
            } else {
                permit.pause(MINUTE).await.unwrap();
            }
        }
        assert_eq!(server.calls("evalsha") - before, 1, "{is_blocking}");
    }
}
