use tallygate_rules::Rule;

use super::*;
use crate::__private::{Correction, call as asked, finish};
use crate::context::{Context, carry, scope};
use crate::decision::Permit;
use crate::limiter::Limiter;
use crate::subject::Subject;

fn policy() -> Policy {
    Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(60))).build().unwrap()
}

/// Makes a call, and returns the permit if it is admitted.
async fn call(limiter: &Limiter, policy: &Policy) -> Option<Permit> {
    limiter.check(policy, &Subject::of("alice")).refundable().await.unwrap().into_result().ok()
}

fn remaining(decisions: &Decisions) -> Vec<(u64, bool)> {
    decisions.standings().iter().map(|standing| (standing.remaining(), standing.denied.is_some())).collect()
}

#[tokio::test]
async fn every_decision_is_collected_however_deep_it_is_made() {
    let (limiter, policy, decisions) = (Limiter::in_memory(), policy(), Decisions::new());
    let request = async {
        let inner = scope(Context::test(), async { call(&limiter, &policy).await.is_some() });
        assert!(Box::pin(inner).await);
    };
    scope(Context::new().collect(&decisions), request).await;
    assert_eq!(remaining(&decisions), [(0, false)]);
    assert!(!decisions.any_denied());
    call(&limiter, &policy).await;
    assert!(!decisions.any_denied(), "outside of the context");
}

#[tokio::test]
async fn a_denial_that_the_caller_ignores_is_collected() {
    let (limiter, policy) = (Limiter::in_memory(), policy());
    call(&limiter, &policy).await;
    for collect in [Context::collect, Context::collect_denials] {
        let decisions = Decisions::new();
        scope(collect(Context::new(), &decisions), async { _ = call(&limiter, &policy).await }).await;
        assert_eq!(remaining(&decisions), [(0, true)]);
    }
}

#[tokio::test]
async fn denials_alone_cost_no_report() {
    let (limiter, policy, decisions) = (Limiter::in_memory(), policy(), Decisions::new());
    let report = async { limiter.check(&policy, &Subject::of("alice")).await.unwrap().report().len() };
    assert_eq!(scope(Context::new().collect_denials(&decisions), report).await, 0);
    assert_eq!(remaining(&decisions), []);
}

#[tokio::test]
async fn a_task_reports_to_the_context_that_was_carried_into_it() {
    let (limiter, policy, decisions) = (Limiter::in_memory(), policy(), Decisions::new());
    let request = async {
        let job = async move { call(&limiter, &policy).await.is_some() };
        tokio::spawn(carry(job)).await.unwrap()
    };
    assert!(scope(Context::new().collect(&decisions), request).await);
    assert_eq!(remaining(&decisions), [(0, false)]);
}

#[tokio::test]
async fn peeks_and_calls_in_shadow_are_no_decisions_for_a_client() {
    let (limiter, policy, decisions) = (Limiter::in_memory(), policy(), Decisions::new());
    let request = async {
        let alice = Subject::of("alice");
        assert_eq!(limiter.peek(&policy, &alice).await.unwrap().report()[0].remaining(), 1);
        for _ in 0..2 {
            asked([&policy], &["alice"], ()).limiter(&limiter).shadow().enter().decided().await.unwrap();
        }
    };
    scope(Context::new().collect(&decisions), request).await;
    assert_eq!(remaining(&decisions), []);
}

#[tokio::test]
async fn a_refund_is_collected_too() {
    let (limiter, policy, decisions) = (Limiter::in_memory(), policy(), Decisions::new());
    let request = async {
        let permit = call(&limiter, &policy).await.unwrap();
        assert!(permit.refund().await.unwrap());
    };
    scope(Context::new().collect(&decisions), request).await;
    assert_eq!(remaining(&decisions), [(1, false)]);
}
#[tokio::test]
async fn a_refund_raises_what_remains_for_its_own_subject_alone() {
    let (limiter, decisions) = (Limiter::in_memory(), Decisions::new());
    let policy = Policy::builder("p").rule(Rule::sliding_window(3, Duration::from_secs(60))).build().unwrap();
    let request = async {
        let admitted = async |name: &str| {
            limiter.check(&policy, &Subject::of(name)).refundable().await.unwrap().into_result().unwrap()
        };
        let alice = admitted("alice").await;
        let bob = [admitted("bob").await, admitted("bob").await];
        assert_eq!(remaining(&decisions), [(1, false)]);
        assert!(alice.refund().await.unwrap());
        assert_eq!(remaining(&decisions), [(1, false)], "bob's");
        for permit in bob {
            assert!(permit.refund().await.unwrap());
        }
        assert_eq!(remaining(&decisions), [(3, false)]);
    };
    scope(Context::new().collect(&decisions), request).await;
}

#[tokio::test]
async fn a_refund_leaves_a_denial_as_it_was() {
    let (limiter, policy, decisions) = (Limiter::in_memory(), policy(), Decisions::new());
    let request = async {
        let permit = call(&limiter, &policy).await.unwrap();
        assert!(call(&limiter, &policy).await.is_none());
        assert!(permit.refund().await.unwrap());
    };
    scope(Context::new().collect(&decisions), request).await;
    assert_eq!(remaining(&decisions), [(0, true)]);
}

#[tokio::test]
async fn a_refund_of_a_call_in_shadow_raises_nothing() {
    let (limiter, decisions) = (Limiter::in_memory(), Decisions::new());
    let policy = Policy::builder("p").rule(Rule::sliding_window(3, Duration::from_secs(60))).build().unwrap();
    let request = async {
        let key = &["alice"];
        let in_shadow =
            asked([&policy], key, ()).limiter(&limiter).shadow().refundable().enter().decided().await.unwrap();
        let _counted = call(&limiter, &policy).await.unwrap();
        finish(in_shadow, [Some(Correction::Refund)]).await;
    };
    scope(Context::new().collect(&decisions), request).await;
    assert_eq!(remaining(&decisions), [(1, false)]);
}

#[tokio::test]
async fn a_call_of_a_paused_subject_is_denied_with_its_wait_and_no_limit_is_reported() {
    let rule = Rule::sliding_window(1, Duration::from_secs(60));
    let policy = Policy::builder("p").rule(rule).pausable().build().unwrap();
    let (limiter, minute, decisions) = (Limiter::in_memory(), Duration::from_secs(60), Decisions::new());
    limiter.check(&policy, &Subject::of("alice")).pause(minute).await.unwrap();
    let request = async { call(&limiter, &policy).await.is_none() };
    assert!(scope(Context::new().collect_denials(&decisions), request).await);
    assert!(decisions.any_denied() && decisions.any_paused() && !decisions.is_empty());
    assert!(decisions.retry_after().is_some_and(|wait| wait <= minute && wait > minute / 2));
    assert_eq!(remaining(&decisions), []);
}
