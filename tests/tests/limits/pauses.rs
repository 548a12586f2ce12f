//! What a pause costs the server.

use std::time::Duration;

use tallygate::{Policy, Rule, Subject};
use tallygate_harness::clocked::Clocked;
use tallygate_harness::server::{Server, patient};
use tokio::task::JoinSet;
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
