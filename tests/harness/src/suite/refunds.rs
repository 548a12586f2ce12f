//! Refunds.

use std::time::Duration;

use tallygate::{Permit, Policy, Rule, Schedule, Subject, TokenBucket};

use super::{MICROSECOND, secs};
use crate::stage::Stage;

fn limit(rule: Rule) -> Policy {
    Policy::builder("refunds").rule(rule).build().expect("the rule is sound")
}

/// One rule of every algorithm, and each admits `count`.
fn algorithms(count: u64) -> [Rule; 4] {
    [
        Rule::sliding_window(count, secs(60)),
        Rule::sliding_counter(count, secs(60)),
        Rule::fixed_window(count, secs(60)),
        Rule::from_bucket(1, TokenBucket::new(secs(60)).with_capacity(count)),
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

async fn refund(permit: Permit) -> bool {
    permit.refund().await.expect("the backend answers")
}

/// A refund removes exactly the hits of its call, also when others followed.
pub async fn a_refund_removes_the_hits_of_its_call_alone(stage: &Stage) {
    for (number, rule) in algorithms(10).into_iter().enumerate() {
        let (policy, subject) = (limit(rule), Subject::of(number));
        let early = permit(stage, &policy, &subject, 3).await;
        stage.pass(Duration::from_micros(5)).await;
        let _late = permit(stage, &policy, &subject, 5).await;
        assert_eq!(remaining(stage, &policy, &subject).await, [2], "{policy:?}");
        assert!(refund(early).await, "{policy:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [5], "{policy:?}");
    }
}

/// Once the hits of a call count no more, a refund removes no hits of a later call.
pub async fn a_refund_that_comes_too_late_removes_nothing(stage: &Stage) {
    for (number, rule) in algorithms(10).into_iter().enumerate() {
        let (policy, subject) = (limit(rule), Subject::of(number));
        let early = permit(stage, &policy, &subject, 3).await;
        stage.pass(secs(1_800)).await;
        let _late = permit(stage, &policy, &subject, 5).await;
        assert!(!refund(early).await, "{policy:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [5], "{policy:?}");
    }
}

/// Hits can be refunded for as long as they count, to the microsecond.
pub async fn a_refund_says_whether_the_hits_still_counted(stage: &Stage) {
    let schedule = Schedule::parse("0 * * * * *", "UTC").expect("a schedule");
    let forgetful = TokenBucket::new(secs(60)).with_capacity(10).with_initial(5).with_reset_after(secs(90));
    let rules = algorithms(10).into_iter().chain([Rule::cron(10, schedule), Rule::from_bucket(1, forgetful)]);
    for (number, rule) in rules.enumerate() {
        let policy = limit(rule);
        for (left, is_refunded) in [(MICROSECOND, true), (secs(0), false)] {
            let subject = Subject::of(number).and(is_refunded);
            let check = stage.limiter().check(&policy, &subject).cost(3).refundable().report();
            let permit = check.await.expect("the backend answers").into_result().expect("there is room");
            stage.pass(permit.report()[0].reset().saturating_sub(left)).await;
            assert_eq!(refund(permit).await, is_refunded, "{left:?} before the end, {policy:?}");
        }
    }
}

/// A bucket that has been full since a call holds nothing of it any more.
pub async fn a_refund_of_tokens_that_flowed_in_again_adds_none(stage: &Stage) {
    let bucket = TokenBucket::new(secs(60)).with_capacity(10).with_reset_after(secs(7_200));
    let (policy, subject) = (limit(Rule::from_bucket(1, bucket)), Subject::of("s"));
    let early = permit(stage, &policy, &subject, 3).await;
    stage.pass(secs(180)).await;
    let late = permit(stage, &policy, &subject, 5).await;
    assert!(!refund(early).await);
    assert_eq!(remaining(stage, &policy, &subject).await, [5]);
    assert!(refund(late).await);
    assert_eq!(remaining(stage, &policy, &subject).await, [10]);
}

/// Of several rules and subjects, a refund reaches those in which the call still counts.
pub async fn a_refund_reaches_every_rule_in_which_the_call_counts(stage: &Stage) {
    let windows = Policy::builder("windows").rule(Rule::sliding_window(5, secs(60)));
    let windows = windows.rule(Rule::fixed_window(7, secs(90))).rule(Rule::sliding_window(9, secs(3_600)));
    let several = Policy::builder("several").rule(Rule::sliding_window(5, secs(60)));
    let several =
        several.rule(Rule::fixed_window(7, secs(90))).rule_on("network", Rule::sliding_counter(9, secs(3_600)));
    let (subject, network) = (Subject::of("s"), Subject::of("n"));
    for (policy, has_network) in [(windows, false), (several, true)] {
        let policy = policy.build().expect("the rules are sound");
        let check = || {
            let check = stage.limiter().check(&policy, &subject).refundable().report();
            if has_network { check.subject("network", &network) } else { check }
        };
        let mut permits = Vec::new();
        for _ in 0..3 {
            permits.push(check().await.expect("the backend answers").into_result().expect("there is room"));
        }
        let left = async || {
            let decision = check().peek().await.expect("the backend answers");
            decision.report().iter().map(tallygate::RuleStatus::remaining).collect::<Vec<_>>()
        };
        for (pass, remaining) in [(secs(59), [3, 5, 7]), (secs(1), [5, 6, 8]), (secs(30), [5, 7, 9])] {
            stage.pass(pass).await;
            assert!(refund(permits.remove(0)).await);
            assert_eq!(left().await, remaining);
        }
    }
}

/// Of two calls at one instant a refund removes one.
pub async fn a_refund_leaves_another_call_of_the_same_instant(stage: &Stage) {
    let (policy, subject) = (limit(Rule::sliding_window(3, secs(60))), Subject::of("s"));
    let (one, _other) = (permit(stage, &policy, &subject, 1).await, permit(stage, &policy, &subject, 1).await);
    assert!(refund(one).await);
    assert_eq!(remaining(stage, &policy, &subject).await, [2]);
}

/// A peek has counted nothing, so its refund removes nothing.
pub async fn a_refund_of_a_peek_removes_nothing(stage: &Stage) {
    for (number, rule) in algorithms(10).into_iter().enumerate() {
        let (policy, subject) = (limit(rule), Subject::of(number));
        let _counted = permit(stage, &policy, &subject, 3).await;
        let peek = stage.limiter().check(&policy, &subject).cost(3).peek().refundable().await;
        let peek = peek.expect("the backend answers").into_result().expect("there is room");
        assert!(!refund(peek).await, "{policy:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [7], "{policy:?}");
    }
}

/// A refund by a policy with a smaller bucket leaves what a larger version of the bucket holds.
pub async fn a_refund_leaves_what_a_larger_bucket_holds(stage: &Stage) {
    let subject = Subject::of("s");
    let bucket = |capacity| {
        limit(Rule::from_bucket(1, TokenBucket::new(secs(60)).with_capacity(capacity).with_reset_after(secs(7_200))))
    };
    let (small, large) = (bucket(3), bucket(30));
    let early = permit(stage, &small, &subject, 1).await;
    stage.pass(secs(1_200)).await;
    let _late = permit(stage, &large, &subject, 1).await;
    assert_eq!(remaining(stage, &large, &subject).await, [21]);
    assert!(!refund(early).await);
    assert_eq!(remaining(stage, &large, &subject).await, [21]);
}

/// A subject that is denied is admitted again as soon as one of its calls is refunded, also under other counts.
pub async fn a_refund_lets_a_denied_subject_call_again(stage: &Stage) {
    let (policy, subject) = (limit(Rule::sliding_window(2, secs(60))), Subject::of("s"));
    let more = policy.with_counts([3]);
    for _ in 0..3 {
        let permits = [permit(stage, &policy, &subject, 1).await, permit(stage, &policy, &subject, 1).await];
        for _ in 0..2 {
            assert_eq!(stage.denied(&policy, &subject).await.retry_after(), Some(secs(60)));
        }
        let third = permit(stage, &more, &subject, 1).await;
        assert_eq!(stage.denied(&more, &subject).await.retry_after(), Some(secs(60)));
        assert_eq!(stage.denied(&policy, &subject).await.retry_after(), Some(secs(60)));
        assert!(refund(third).await);
        stage.denied(&policy, &subject).await;
        for permit in permits {
            assert!(refund(permit).await);
        }
        assert_eq!(stage.room(&policy, &subject).await, 2);
        stage.pass(secs(60)).await;
    }
}

/// A refund of a permit that is not refundable is an error.
pub async fn only_a_refundable_permit_can_be_refunded(stage: &Stage) {
    let policy = limit(Rule::sliding_window(3, secs(60)));
    let permit = stage.call(&policy, &Subject::of("s")).await.into_result().expect("there is room");
    assert!(permit.refund().await.expect_err("it is not refundable").to_string().contains("`Check::refundable`"));
}
