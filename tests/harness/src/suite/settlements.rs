//! Calls that are settled for what they have used.

use std::time::Duration;

use tallygate::{Permit, Policy, Rule, RuleStatus, Subject, TokenBucket};

use super::secs;
use crate::stage::Stage;
use crate::until::until_found;

fn limit(rules: impl IntoIterator<Item = Rule>) -> Policy {
    Policy::builder("settlements").rules(rules).build().expect("the rules are sound")
}

async fn permit(stage: &Stage, policy: &Policy, subject: &Subject, cost: u64) -> Permit {
    let decision = stage.limiter().check(policy, subject).cost(cost).refundable().await;
    decision.expect("the backend answers").into_result().expect("there is room")
}

async fn remaining(stage: &Stage, policy: &Policy, subject: &Subject) -> Vec<u64> {
    let decision = stage.limiter().peek(policy, subject).await.expect("the backend answers");
    decision.report().iter().map(RuleStatus::remaining).collect()
}

async fn settle(permit: Permit, used: u64) -> bool {
    permit.settle(used).await.expect("the backend answers")
}

/// Under every algorithm, a settled call counts as what it has used: less than its cost, more, or as much.
pub async fn a_settled_call_counts_as_what_it_has_used(stage: &Stage) {
    let rules = [
        Rule::sliding_window(100, secs(60)),
        Rule::sliding_counter(100, secs(60)),
        Rule::fixed_window(100, secs(60)),
        Rule::from_bucket(1, TokenBucket::new(secs(3_600)).with_capacity(100)),
    ];
    for (number, rule) in rules.into_iter().enumerate() {
        let (policy, subject) = (limit([rule]), Subject::of(number));
        let [less, more, same] = [
            permit(stage, &policy, &subject, 20).await,
            permit(stage, &policy, &subject, 20).await,
            permit(stage, &policy, &subject, 20).await,
        ];
        stage.pass(Duration::from_micros(5)).await;
        assert!(settle(less, 5).await, "{policy:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [55], "{policy:?}");
        assert!(settle(more, 50).await, "{policy:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [25], "{policy:?}");
        assert!(!settle(same, 20).await, "{policy:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [25], "{policy:?}");
    }
}

/// What was used beyond the limit keeps the subject out until it is out of the window of its call.
pub async fn a_call_that_has_used_more_than_the_limit_is_waited_off(stage: &Stage) {
    let (policy, subject) = (limit([Rule::sliding_window(10, secs(60))]), Subject::of("beyond"));
    let call = permit(stage, &policy, &subject, 1).await;
    stage.pass(secs(20)).await;
    stage.admitted(&policy, &subject).await;
    assert!(settle(call, 1_000_000).await);
    assert_eq!(stage.denied(&policy, &subject).await.retry_after(), Some(secs(40)));
    stage.pass(secs(40)).await;
    assert_eq!(remaining(stage, &policy, &subject).await, [9]);
}

/// A bucket is charged what was used beyond the cost, although the cost itself has flowed in again.
pub async fn a_bucket_that_is_full_again_is_charged_what_was_used_beyond_the_cost(stage: &Stage) {
    let rule = Rule::from_bucket(10_000, TokenBucket::new(secs(60)));
    let (policy, subject) = (limit([rule]), Subject::of("refilled"));
    let [call, other] = [permit(stage, &policy, &subject, 1).await, permit(stage, &policy, &subject, 20).await];
    stage.pass(secs(2)).await;
    assert!(settle(call, 9_001).await);
    assert_eq!(remaining(stage, &policy, &subject).await, [1_000]);
    // What the other one has taken was back before.
    assert!(!settle(other, 1).await);
    assert_eq!(remaining(stage, &policy, &subject).await, [1_000]);
}

/// A bucket fills up as it does after a hit: it is not as new before, although its last call is longer ago.
pub async fn a_bucket_that_a_settlement_empties_fills_up_from_then_on(stage: &Stage) {
    let rule = Rule::from_bucket(10_000, TokenBucket::new(secs(60)));
    let (policy, subject) = (limit([rule]), Subject::of("emptied"));
    let call = permit(stage, &policy, &subject, 1).await;
    stage.pass(secs(59)).await;
    assert!(settle(call, u64::MAX).await);
    assert_eq!(remaining(stage, &policy, &subject).await, [0]);
    stage.pass(secs(30)).await;
    assert_eq!(remaining(stage, &policy, &subject).await, [5_000]);
    let late = permit(stage, &policy, &subject, 1).await;
    stage.pass(secs(60)).await;
    assert!(!settle(late, 9_000).await, "the bucket is unused");
    assert_eq!(remaining(stage, &policy, &subject).await, [10_000]);
}

/// A call that counts no more is not charged anew.
pub async fn a_call_that_is_over_settles_nothing(stage: &Stage) {
    let (policy, subject) = (limit([Rule::sliding_window(10, secs(60))]), Subject::of("over"));
    let call = permit(stage, &policy, &subject, 2).await;
    stage.pass(secs(60)).await;
    assert!(!settle(call, 9).await);
    assert_eq!(remaining(stage, &policy, &subject).await, [10]);
}

/// Whatever a call has used, it is one call to a rule against duplicates; only one that has used nothing is none.
pub async fn a_settled_call_stays_one_call_unless_it_has_used_nothing(stage: &Stage) {
    let rules = [Rule::duplicate(secs(5)), Rule::sliding_window(100, secs(60))];
    let (policy, subject) = (limit(rules), Subject::of("duplicates"));
    let call = permit(stage, &policy, &subject, 10).await;
    assert!(settle(call, 1).await);
    assert_eq!(stage.denied(&policy, &subject).await.retry_after(), Some(secs(5)));
    stage.pass(secs(5)).await;
    let call = permit(stage, &policy, &subject, 10).await;
    assert!(settle(call, 0).await);
    assert_eq!(remaining(stage, &policy, &subject).await, [1, 99]);
}

/// Behind too many calls, nothing is given back, and what was used beyond the cost counts with a later call.
pub async fn a_settlement_far_behind_the_last_call_only_adds(stage: &Stage) {
    let (policy, subject) = (limit([Rule::sliding_window(5_000, secs(60))]), Subject::of("far"));
    let [less, more] = [permit(stage, &policy, &subject, 10).await, permit(stage, &policy, &subject, 10).await];
    for _ in 0..1_100 {
        stage.pass(Duration::from_micros(10)).await;
        stage.admitted(&policy, &subject).await;
    }
    assert!(!settle(less, 1).await);
    assert!(settle(more, 510).await);
    assert_eq!(remaining(stage, &policy, &subject).await, [5_000 - 20 - 1_100 - 500]);
}

/// A call that has reserved nothing cannot be settled.
pub async fn a_call_that_has_reserved_nothing_cannot_be_settled(stage: &Stage) {
    let (policy, subject) = (limit([Rule::sliding_window(10, secs(60))]), Subject::of("nothing"));
    let peek = stage.limiter().check(&policy, &subject).cost(3).peek().refundable().await;
    let peek = peek.expect("the backend answers").into_result().expect("there is room");
    for permit in [peek, permit(stage, &policy, &subject, 0).await] {
        let error = permit.settle(5).await.expect_err("there is nothing to settle").to_string();
        assert!(error.contains("has reserved nothing") && error.contains("give it a `cost`"), "{error}");
    }
    let error = permit(stage, &policy, &subject, 0).await.meter("calls").expect_err("there is nothing to settle");
    assert!(error.to_string().contains("has reserved nothing"), "{error}");
    let once = stage.limiter().check(&policy, &subject).await.expect("the backend answers");
    let error = once.into_result().expect("there is room").meter("calls").expect_err("it cannot be settled");
    assert!(error.to_string().contains("ask for it with `Check::refundable`"), "{error}");
    assert_eq!(remaining(stage, &policy, &subject).await, [9]);
    let tokens = limit([Rule::sliding_window(10, secs(60)).counting("tokens")]);
    let error = permit(stage, &tokens, &subject, 0).await.settle(5).await.expect_err("it has no calls").to_string();
    assert!(error.contains("counts calls") && error.contains("`settle_units(&[(\"tokens\", used)])`"), "{error}");
}

/// A metered call is settled when its permit and its last meter are dropped, wherever that is, for what was added until then.
pub async fn a_metered_call_is_settled_for_what_was_added_when_its_last_meter_is_dropped(stage: &Stage) {
    let (policy, subject) = (limit([Rule::sliding_window(100, secs(60))]), Subject::of("metered"));
    let meter = |mut permit: Permit| permit.meter("calls").expect("it can be settled");
    let metered = async || meter(permit(stage, &policy, &subject, 20).await);
    let [less, more, unused] = [metered().await, metered().await, metered().await];
    let other = less.clone();
    less.add(3);
    drop(less);
    other.add(2);
    more.add(50);
    assert_eq!([other.used(), more.used(), unused.used()], [5, 50, 0]);
    assert_eq!(remaining(stage, &policy, &subject).await, [40], "a meter of each is in use");
    for (dropped, left) in [(other, 55), (more, 25), (unused, 45)] {
        drop(dropped);
        until_found("it is settled", async || remaining(stage, &policy, &subject).await == [left]).await;
    }
    let mut permit = permit(stage, &policy, &subject, 20).await;
    let meter = permit.meter("calls").expect("it can be settled");
    meter.add(u64::MAX);
    meter.add(1);
    drop(meter);
    assert!(permit.settle_units(&[]).await.expect("the backend answers"));
    assert_eq!(remaining(stage, &policy, &subject).await, [0]);
}
