//! Limits of which another side says that less is left.

use tallygate::{Permit, Policy, Rule, RuleStatus, Subject, TokenBucket};

use super::{MICROSECOND, policy, secs, somebody};
use crate::stage::Stage;

async fn permit(stage: &Stage, policy: &Policy, subject: &Subject, cost: u64) -> Permit {
    let decision = stage.limiter().check(policy, subject).cost(cost).refundable().await;
    decision.expect("the backend answers").into_result().expect("there is room")
}

async fn remaining(stage: &Stage, policy: &Policy, subject: &Subject) -> Vec<u64> {
    let decision = stage.limiter().peek(policy, subject).await.expect("the backend answers");
    decision.report().iter().map(RuleStatus::remaining).collect()
}

/// The other side says that so much is left for a minute.
async fn leave(permit: &Permit, position: usize, most: u64) -> bool {
    permit.leave_at_most(position, most, secs(60)).await.expect("the backend answers")
}

/// Under every algorithm: the same number changes nothing more, a greater one nothing at all.
pub async fn no_more_is_left_of_a_rule_than_the_other_side_says(stage: &Stage) {
    let rules = [
        Rule::sliding_window(100, secs(60)),
        Rule::sliding_counter(100, secs(60)),
        Rule::fixed_window(100, secs(60)),
        Rule::from_bucket(100, TokenBucket::new(secs(60))),
    ];
    for (number, rule) in rules.into_iter().enumerate() {
        let (policy, subject) = (policy("left", [rule]), Subject::of(number));
        let call = permit(stage, &policy, &subject, 1).await;
        assert!(!leave(&call, 0, 99).await, "{policy:?}");
        assert!(leave(&call, 0, 30).await, "{policy:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [30], "{policy:?}");
        stage.admitted(&policy, &subject).await;
        for more in [30, 99, 1_000] {
            assert!(!leave(&call, 0, more).await, "{policy:?}");
        }
        assert_eq!(remaining(stage, &policy, &subject).await, [29], "{policy:?}");
        assert!(leave(&call, 0, 0).await, "{policy:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [0], "{policy:?}");
        stage.denied(&policy, &subject).await;
        stage.pass(secs(120)).await;
        assert_eq!(remaining(stage, &policy, &subject).await, [100], "{policy:?}");
    }
}

/// What others have used is out of a sliding window when the other side counts anew, and not a whole window later.
pub async fn a_sliding_window_counts_the_use_of_others_until_the_other_side_counts_anew(stage: &Stage) {
    let (policy, subject) = (policy("anew", [Rule::sliding_window(10, secs(60))]), somebody());
    stage.admitted(&policy, &subject).await;
    stage.pass(secs(20)).await;
    let call = permit(stage, &policy, &subject, 1).await;
    stage.pass(secs(10)).await;
    // The first call leaves the window in 30 seconds.
    assert!(call.leave_at_most(0, 4, secs(25)).await.expect("the backend answers"));
    assert_eq!(remaining(stage, &policy, &subject).await, [4]);
    stage.pass(secs(30)).await;
    assert_eq!(remaining(stage, &policy, &subject).await, [9]);
}

/// Where none of its calls leaves a sliding window near the reset, or any time would do, nothing is held back for long.
pub async fn a_sliding_window_whose_calls_are_too_new_for_a_reset_stays_as_it_is(stage: &Stage) {
    let (policy, subject) = (policy("new", [Rule::sliding_window(100, secs(60))]), somebody());
    let call = permit(stage, &policy, &subject, 1).await;
    for reset in [secs(1), secs(29)] {
        assert!(!call.leave_at_most(0, 7, reset).await.expect("the backend answers"), "{reset:?}");
    }
    assert_eq!(remaining(stage, &policy, &subject).await, [99]);
    for (reset, most) in [(secs(30), 7), (secs(u64::MAX), 6), (std::time::Duration::MAX, 5)] {
        assert!(call.leave_at_most(0, most, reset).await.expect("the backend answers"), "{reset:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [most]);
    }
}

/// Nor does any other rule hold back for long what the other side admits again soon.
pub async fn a_rule_that_would_count_the_use_of_others_for_long_after_a_reset_stays_as_it_is(stage: &Stage) {
    let rules = [
        Rule::sliding_counter(100, secs(60)),
        Rule::fixed_window(100, secs(60)),
        Rule::from_bucket(100, TokenBucket::new(secs(60))),
    ];
    for (number, rule) in rules.into_iter().enumerate() {
        let (policy, subject) = (policy("soon", [rule]), Subject::of(number));
        let call = permit(stage, &policy, &subject, 1).await;
        assert!(!call.leave_at_most(0, 5, secs(2)).await.expect("the backend answers"), "{policy:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [99], "{policy:?}");
    }
    // A bucket fills by so many in that time.
    let (policy, subject) =
        (policy("flow", [Rule::from_bucket(100, TokenBucket::new(secs(100)))]), Subject::of("bucket"));
    let call = permit(stage, &policy, &subject, 1).await;
    assert!(!call.leave_at_most(0, 89, secs(5)).await.expect("the backend answers"));
    assert!(call.leave_at_most(0, 90, secs(5)).await.expect("the backend answers"));
    assert_eq!(remaining(stage, &policy, &subject).await, [90]);
}

/// Windows of one subject share a log: a longer one bounds what is added, and a shorter one does not count what is older.
pub async fn no_longer_window_comes_above_its_count_by_the_use_of_others(stage: &Stage) {
    let windows = [(5, 1), (10, 60), (12, 3_600)].map(|(count, per)| Rule::sliding_window(count, secs(per)));
    let (policy, subject) = (policy("longer", windows), somebody());
    assert!(stage.costly(&policy, &subject, 4).await.is_allowed());
    stage.pass(secs(100)).await;
    stage.admitted(&policy, &subject).await;
    stage.pass(secs(2)).await;
    let call = permit(stage, &policy, &subject, 1).await;
    assert!(call.leave_at_most(1, 0, secs(30)).await.expect("the backend answers"));
    assert_eq!(remaining(stage, &policy, &subject).await, [4, 2, 0]);
}

/// A rule with a counter of its own leaves those beside it alone.
pub async fn the_use_of_others_counts_in_no_other_rule_with_a_counter_of_its_own(stage: &Stage) {
    let rules =
        [Rule::fixed_window(10, secs(60)), Rule::fixed_window(50, secs(3_600)), Rule::sliding_window(8, secs(10))];
    let (policy, subject) = (policy("beside", rules), somebody());
    let call = permit(stage, &policy, &subject, 1).await;
    assert!(leave(&call, 0, 2).await);
    assert_eq!(remaining(stage, &policy, &subject).await, [2, 49, 7]);
}

/// An answer that comes late says nothing about the next window.
pub async fn a_window_that_counts_the_answered_call_no_more_stays_as_it_is(stage: &Stage) {
    let rules =
        [Rule::sliding_window(10, secs(60)), Rule::sliding_counter(10, secs(60)), Rule::fixed_window(10, secs(60))];
    for (number, rule) in rules.into_iter().enumerate() {
        let (policy, subject) = (policy("late", [rule]), Subject::of(number));
        let call = permit(stage, &policy, &subject, 1).await;
        stage.pass(secs(120)).await;
        stage.admitted(&policy, &subject).await;
        assert!(!leave(&call, 0, 2).await, "{policy:?}");
        assert_eq!(remaining(stage, &policy, &subject).await, [9], "{policy:?}");
    }
}

/// A long log of calls of any weight is charged exactly.
pub async fn a_long_log_leaves_exactly_what_the_other_side_says(stage: &Stage) {
    let (policy, subject) = (policy("long", [Rule::sliding_window(500, secs(60))]), somebody());
    let mut calls = Vec::new();
    for number in 0..90 {
        calls.push(permit(stage, &policy, &subject, 1 + number % 3).await);
        stage.pass(MICROSECOND).await;
    }
    assert_eq!(remaining(stage, &policy, &subject).await, [320]);
    for (call, most) in [(&calls[0], 200), (&calls[89], 150), (&calls[40], 7)] {
        assert!(leave(call, 0, most).await);
        assert_eq!(remaining(stage, &policy, &subject).await, [most]);
        assert!(call.leave_at_most(0, most - 1, secs(30)).await.expect("the backend answers"));
        assert_eq!(remaining(stage, &policy, &subject).await, [most - 1]);
    }
}

/// A unit is left alone by what is said of another one, and one in which the call costs nothing cannot be told.
pub async fn the_use_of_others_counts_in_its_unit_alone(stage: &Stage) {
    let [tokens, bytes] = ["tokens", "bytes"].map(|unit| Rule::sliding_window(1_000, secs(60)).counting(unit));
    let (policy, subject) = (policy("units", [Rule::sliding_window(10, secs(60)), tokens, bytes]), somebody());
    let decision = stage.limiter().check(&policy, &subject).cost_of("tokens", 100).refundable().await;
    let call = decision.expect("the backend answers").into_result().expect("there is room");
    assert!(leave(&call, 1, 300).await);
    assert!(!leave(&call, 2, 300).await);
    assert_eq!(remaining(stage, &policy, &subject).await, [9, 300, 1_000]);
}

/// Only a limit has something left, and only a permit that can be refunded knows its counts.
pub async fn only_a_limit_of_a_refundable_call_can_be_told_what_is_left(stage: &Stage) {
    let rules = [Rule::sliding_window(10, secs(60)), Rule::duplicate(MICROSECOND)];
    let (policy, subject) = (policy("wrong", rules), somebody());
    let call = permit(stage, &policy, &subject, 1).await;
    for position in [1, 2] {
        let error = call.leave_at_most(position, 1, secs(1)).await.expect_err("it is no limit").to_string();
        assert!(error.contains("no limit at position") && error.contains("from a report"), "{error}");
    }
    assert!(!call.leave_at_most(0, 1, secs(0)).await.expect("the backend answers"), "it counts anew now");
    stage.pass(MICROSECOND).await;
    let plain = stage.call(&policy, &subject).await.into_result().expect("there is room");
    let error = plain.leave_at_most(0, 1, secs(1)).await.expect_err("its counts are unknown").to_string();
    assert!(error.contains("`Check::refundable`"), "{error}");
}
