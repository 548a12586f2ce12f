//! What a pause costs the calls of others.

use std::time::Duration;

use tallygate::{Policy, Rule, Subject};
use tallygate_harness::server::{Server, patient};
use tokio::task::JoinSet;

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
