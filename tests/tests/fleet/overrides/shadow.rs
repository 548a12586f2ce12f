//! Whole policies that are put in shadow, or enforced, while running.

use std::time::Duration;

use tallygate::context::{self, Context};
use tallygate::{DecidedBy, Decision, Limiter, Policy, Rejection, Subject, rate_limit};
use tallygate_harness::log::Log;
use tallygate_harness::server::Server;

use super::{allowed, clear, every_backend, hourly, policy, room, subject, until};

every_backend!(
    an_override_puts_a_policy_in_shadow_and_back,
    a_policy_that_is_built_in_shadow_can_be_enforced,
    an_override_in_shadow_has_rules_of_its_own,
    subjects_with_an_override_of_their_own_are_in_shadow_too,
    a_call_in_shadow_is_neither_refunded_nor_settled_where_it_would_be_denied,
    a_call_in_shadow_does_not_wait,
);

fn written(limiter: &Limiter, text: &str) -> impl Future<Output = Result<(), tallygate::Error>> {
    limiter.override_policy("over.ride").text(text).set()
}

async fn an_override_puts_a_policy_in_shadow_and_back(limiter: Limiter) {
    let policy = policy(1);
    assert!(allowed(&limiter, &policy).await && !allowed(&limiter, &policy).await);
    limiter.override_policy("over.ride").shadow().set().await.unwrap();
    assert!(allowed(&limiter, &policy).await && allowed(&limiter, &policy).await);
    assert_eq!(limiter.overrides().await.unwrap()[0].to_string(), "shadow");
    assert_eq!(limiter.overrides().await.unwrap()[0].shadow(), Some(true));
    let decision = limiter.peek(&policy, &subject()).await.unwrap();
    assert!(!decision.is_allowed(), "a peek says what would be decided");
    clear(&limiter).await;
    assert!(!allowed(&limiter, &policy).await);
}

async fn a_policy_that_is_built_in_shadow_can_be_enforced(limiter: Limiter) {
    let policy = Policy::builder("over.ride").rule(hourly(1)).shadow().build().unwrap();
    assert!(policy.is_shadow());
    assert!(allowed(&limiter, &policy).await && allowed(&limiter, &policy).await);
    written(&limiter, "enforced for 1h").await.unwrap();
    assert!(!allowed(&limiter, &policy).await);
    clear(&limiter).await;
    assert!(allowed(&limiter, &policy).await);
}

async fn an_override_in_shadow_has_rules_of_its_own(limiter: Limiter) {
    let policy = policy(9);
    written(&limiter, "2 per 1h, shadow").await.unwrap();
    for left in [1, 0, 0] {
        assert!(allowed(&limiter, &policy).await);
        let report = limiter.peek(&policy, &subject()).await.unwrap();
        assert_eq!(report.report()[0].remaining(), left);
    }
    let mistake = limiter.override_policy("over.ride").subject(&subject()).text("shadow").set().await.unwrap_err();
    assert!(mistake.to_string().contains("hold for a whole policy"), "{mistake}");
}

async fn subjects_with_an_override_of_their_own_are_in_shadow_too(limiter: Limiter) {
    let policy = policy(1);
    limiter.override_policy("over.ride").subject(&subject()).text("0 per 1h").set().await.unwrap();
    assert!(!allowed(&limiter, &policy).await);
    written(&limiter, "shadow").await.unwrap();
    assert!(allowed(&limiter, &policy).await);
    let closed = limiter.check(&policy, &subject()).peek().await.unwrap();
    assert!(!closed.is_allowed(), "its rules are its own");
}

async fn a_call_in_shadow_is_neither_refunded_nor_settled_where_it_would_be_denied(limiter: Limiter) {
    let policy = policy(1);
    let call =
        || async { limiter.check(&policy, &subject()).shadow().refundable().await.unwrap().into_result().unwrap() };
    let (counted, uncounted, settled) = (call().await, call().await, call().await);
    assert!(!uncounted.refund().await.unwrap() && !settled.settle(0).await.unwrap());
    assert_eq!(room(&limiter, &policy, &subject()).await, 0);
    assert!(counted.refund().await.unwrap());
    assert_eq!(room(&limiter, &policy, &subject()).await, 1);
}

async fn a_call_in_shadow_does_not_wait(limiter: Limiter) {
    let policy = policy(1);
    for _ in 0..3 {
        let decided = limiter.check(&policy, &subject()).shadow().wait(Duration::from_secs(3_600)).await;
        assert!(decided.unwrap().is_allowed());
    }
}

#[rate_limit(name = "over.ride", key = "{user}", rule(count = 1, per = "1h"), limiter = limiter)]
async fn limited(user: &str, limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test]
async fn an_operator_puts_a_function_in_shadow_and_the_log_of_its_process_says_who_it_was() {
    let server = Server::start();
    let (admin, worker) = (server.limiter().await, server.limiter().await);
    limited("alice", &worker).await.unwrap();
    let (log, _listening) = Log::listen();
    context::scope(Context::new().with("operator", "zoe b."), written(&admin, "shadow")).await.unwrap();
    let tried = |line: &&String| line.contains("denied in shadow") && line.contains("over.ride");
    until(async || {
        let _ = limited("alice", &worker).await;
        log.lines().iter().any(|line| tried(&line))
    })
    .await;
    let adopted: Vec<_> = log.lines().into_iter().filter(|line| line.contains("rules were overridden")).collect();
    assert!(adopted.len() == 2 && adopted.iter().all(|line| line.contains("zoe b.")), "{adopted:?}");
}

#[tokio::test]
async fn in_shadow_no_outage_denies_a_call() {
    let limiter = Limiter::builder().deadline(Duration::from_millis(50));
    let limiter = limiter.connect_lazy("redis+unix:///nowhere").unwrap();
    let policy = Policy::builder("over.tried").rule(hourly(1)).shadow().build().unwrap();
    let decided = limiter.check(&policy, &Subject::of("a")).refundable().await.unwrap();
    let Decision::Allowed(permit) = decided else { panic!("a denial in shadow") };
    assert_eq!(permit.decided_by(), DecidedBy::Nobody);
    assert!(!permit.refund().await.unwrap());
}
