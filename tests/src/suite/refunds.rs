//! Refunds.

use std::time::Duration;

use tallygate::{Permit, Policy, Rule, Subject, TokenBucket};

use super::secs;
use crate::stage::Stage;

fn limit(rule: Rule) -> Policy {
    Policy::builder("around").rule(rule).build().expect("the rule is sound")
}

/// One rule of every algorithm, and each admits `count`.
fn algorithms(count: u64) -> [Rule; 4] {
    [
        Rule::sliding_window(count, secs(60)),
        Rule::sliding_counter(count, secs(60)),
        Rule::fixed_window(count, secs(60)),
        TokenBucket::new(1, secs(60)).capacity(count).into(),
    ]
}

async fn permit(stage: &Stage, policy: &Policy, subject: &Subject, cost: u64) -> Permit {
    let decision = stage.limiter().check(policy, subject).cost(cost).refundable().await;
    decision.expect("the backend answers").into_result().expect("there is room")
}

async fn remaining(stage: &Stage, policy: &Policy, subject: &Subject) -> Vec<u64> {
    let decision = stage.limiter().peek(policy, subject).await.expect("the backend answers");
    decision.report().iter().map(tallygate::RuleStatus::remaining).collect()
}

/// A refund takes back exactly the hits of its call, also long after others followed.
pub async fn a_refund_takes_back_its_own_call_alone(stage: &Stage) {
    for (number, rule) in algorithms(10).into_iter().enumerate() {
        let (policy, subject) = (limit(rule), Subject::of(number));
        let early = permit(stage, &policy, &subject, 3).await;
        stage.pass(Duration::from_micros(5)).await;
        let _late = permit(stage, &policy, &subject, 5).await;
        assert_eq!(remaining(stage, &policy, &subject).await, [2], "{policy:?}");
        assert!(early.refund().await.expect("the backend answers"), "{policy:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [5], "{policy:?}");
    }
}

/// Hits that are out of their window are not taken back from a later one.
pub async fn a_refund_that_comes_too_late_gives_nothing(stage: &Stage) {
    for (number, rule) in algorithms(10).into_iter().enumerate() {
        let (policy, subject) = (limit(rule), Subject::of(number));
        let early = permit(stage, &policy, &subject, 3).await;
        stage.pass(secs(1_800)).await;
        let _late = permit(stage, &policy, &subject, 5).await;
        early.refund().await.expect("the backend answers");
        assert_eq!(remaining(stage, &policy, &subject).await, [5], "{policy:?}");
    }
}

/// Of two calls at one instant a refund takes back one.
pub async fn a_refund_leaves_another_call_of_the_same_instant(stage: &Stage) {
    let (policy, subject) = (limit(Rule::sliding_window(3, secs(60))), Subject::of("s"));
    let (one, _other) = (permit(stage, &policy, &subject, 1).await, permit(stage, &policy, &subject, 1).await);
    assert!(one.refund().await.expect("the backend answers"));
    assert_eq!(remaining(stage, &policy, &subject).await, [2]);
}

/// A look has counted nothing, so nothing is taken back for it.
pub async fn a_refund_of_a_look_takes_back_no_other_call(stage: &Stage) {
    for (number, rule) in algorithms(10).into_iter().enumerate() {
        let (policy, subject) = (limit(rule), Subject::of(number));
        let _counted = permit(stage, &policy, &subject, 3).await;
        let look = stage.limiter().check(&policy, &subject).cost(3).peek().refundable().await;
        let look = look.expect("the backend answers").into_result().expect("there is room");
        assert!(!look.refund().await.expect("the backend answers"), "{policy:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [7], "{policy:?}");
    }
}

/// What a larger version of a bucket holds is not lost when a call of a smaller one is taken back.
pub async fn a_refund_leaves_what_a_larger_bucket_holds(stage: &Stage) {
    let subject = Subject::of("s");
    let bucket = |capacity| limit(TokenBucket::new(1, secs(60)).capacity(capacity).reset_after(secs(7_200)).into());
    let (small, large) = (bucket(3), bucket(30));
    let early = permit(stage, &small, &subject, 1).await;
    stage.pass(secs(1_200)).await;
    let _late = permit(stage, &large, &subject, 1).await;
    assert_eq!(remaining(stage, &large, &subject).await, [21]);
    assert!(!early.refund().await.expect("the backend answers"));
    assert_eq!(remaining(stage, &large, &subject).await, [21]);
}

/// A permit that was not asked for as refundable says so.
pub async fn only_a_refundable_permit_can_be_given_back(stage: &Stage) {
    let policy = limit(Rule::sliding_window(3, secs(60)));
    let permit = stage.call(&policy, &Subject::of("s")).await.into_result().expect("there is room");
    assert!(permit.refund().await.expect_err("it is not refundable").to_string().contains("`Check::refundable`"));
}
