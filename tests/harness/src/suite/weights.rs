//! The weights of calls in sliding windows, and how many calls a window distinguishes.

use std::collections::VecDeque;
use std::time::Duration;

use tallygate::{Decision, Permit, Policy, RejectionKind, Rule};

use super::{MICROSECOND, named, policy, report_of, secs, somebody};
use crate::stage::Stage;

/// The greatest count of a sliding window.
const GREATEST: u64 = 1 << 31;
/// How many later calls a refund reaches over.
const DISTANCE: u64 = 1_024;
/// How many calls a window distinguishes.
const ENTRIES: u64 = 65_536;

fn windows<const N: usize>(rules: [(u64, u64); N]) -> Policy {
    policy("weights", rules.map(|(count, per)| Rule::sliding_window(count, secs(per))))
}

async fn is_admitted(stage: &Stage, policy: &Policy, cost: u64) -> bool {
    stage.costly(policy, &somebody(), cost).await.is_allowed()
}

async fn wait(stage: &Stage, policy: &Policy, cost: u64) -> Option<Duration> {
    match stage.costly(policy, &somebody(), cost).await {
        Decision::Denied(denial) => denial.retry_after(),
        allowed @ Decision::Allowed(_) => panic!("{allowed:?}"),
    }
}

async fn permit(stage: &Stage, policy: &Policy, cost: u64) -> Permit {
    let decision = stage.limiter().check(policy, &somebody()).cost(cost).refundable().await;
    decision.expect("the backend answers").into_result().expect("there is room")
}

async fn refund(permit: Permit) -> bool {
    permit.refund().await.expect("the backend answers")
}

async fn remaining(stage: &Stage, policy: &Policy) -> Vec<u64> {
    let peek = stage.limiter().peek(policy, &somebody()).await.expect("the backend answers");
    report_of(&peek).into_iter().map(|(_, remaining)| remaining).collect()
}

/// A window holds as much weight as its count, from one call or from many.
pub async fn a_window_holds_calls_of_any_weight_up_to_its_count(stage: &Stage) {
    let policy = windows([(GREATEST - 5, 60), (GREATEST, 3_600)]);
    assert_eq!(wait(stage, &policy, GREATEST + 1).await, None);
    for (cost, left) in [(GREATEST - 10, [5, 10]), (7, [GREATEST - 12, 3]), (3, [GREATEST - 8, 0])] {
        assert!(is_admitted(stage, &policy, cost).await);
        assert_eq!(remaining(stage, &policy).await, left);
        stage.pass(secs(60)).await;
    }
    stage.pass(secs(3_420).saturating_sub(MICROSECOND)).await;
    assert_eq!(wait(stage, &policy, 1).await, Some(MICROSECOND));
    assert_eq!(wait(stage, &policy, GREATEST - 5).await, Some(secs(60) + MICROSECOND));
    stage.pass(MICROSECOND).await;
    assert!(is_admitted(stage, &policy, GREATEST - 10).await);
}

/// However heavy the calls are that have ended, they hide none that counts, also among many light ones.
pub async fn heavy_calls_that_have_ended_do_not_hide_what_counts(stage: &Stage) {
    let policy = windows([(GREATEST, 60)]);
    assert!(is_admitted(stage, &policy, GREATEST - 1).await);
    stage.pass(secs(59)).await;
    assert!(is_admitted(stage, &policy, 1).await);
    stage.pass(secs(1)).await;
    for _ in 0..99 {
        assert!(is_admitted(stage, &policy, 1).await);
        stage.pass(Duration::from_millis(1)).await;
    }
    assert!(is_admitted(stage, &policy, GREATEST - 100).await);
    stage.pass(Duration::from_millis(58_901)).await;
    assert!(is_admitted(stage, &policy, 1).await);
    stage.pass(Duration::from_millis(1)).await;
    assert_eq!(wait(stage, &policy, GREATEST).await, Some(Duration::from_millis(59_999)));
    assert_eq!(remaining(stage, &policy).await, [0]);
}

/// A costly call waits for as many of the older ones as weigh enough, however much each of them weighs.
pub async fn a_costly_call_waits_until_enough_weight_has_left(stage: &Stage) {
    let policy = windows([(100, 60)]);
    for cost in [40, 1, 1, 30, 8, 20] {
        assert!(is_admitted(stage, &policy, cost).await);
        stage.pass(secs(1)).await;
    }
    // Six seconds have passed, and nothing is left.
    let waits = [(1, 54), (40, 54), (41, 55), (42, 56), (43, 57), (72, 57), (73, 58), (80, 58), (81, 59), (100, 59)];
    for (cost, seconds) in waits {
        assert_eq!(wait(stage, &policy, cost).await, Some(secs(seconds)), "of a call of {cost}");
    }
    stage.pass(secs(57)).await;
    assert!(is_admitted(stage, &policy, 72).await);
    assert_eq!(wait(stage, &policy, 1).await, Some(secs(1)));
}

/// A refund in the middle of a log gives its own weight back to every window, and no other call moves.
pub async fn a_refund_in_the_middle_gives_back_its_weight_alone(stage: &Stage) {
    let policy = windows([(50, 60), (100, 600)]);
    let mut permits = VecDeque::new();
    for cost in [10, 15, 20] {
        permits.push_back(permit(stage, &policy, cost).await);
        stage.pass(secs(10)).await;
    }
    assert!(refund(permits.remove(1).expect("there are three")).await);
    assert_eq!(remaining(stage, &policy).await, [20, 70]);
    for (cost, seconds) in [(21, 30), (30, 30), (31, 50), (50, 50)] {
        assert_eq!(wait(stage, &policy, cost).await, Some(secs(seconds)), "of a call of {cost}");
    }
    stage.pass(secs(30)).await;
    assert_eq!(remaining(stage, &policy).await, [30, 70]);
    for permit in permits {
        assert!(refund(permit).await);
    }
    assert_eq!(remaining(stage, &policy).await, [50, 100]);
}

/// A call that was refunded is no duplicate; one before it that still counts is.
pub async fn a_refunded_call_is_no_duplicate(stage: &Stage) {
    let rules = [Rule::duplicate(secs(5)), Rule::sliding_window(1_000, secs(60))];
    let policy = policy("weights", rules);
    let first = permit(stage, &policy, 7).await;
    assert!(refund(first).await);
    let _second = permit(stage, &policy, 7).await;
    stage.pass(secs(5)).await;
    let third = permit(stage, &policy, 7).await;
    stage.pass(secs(2)).await;
    assert_eq!(named(&stage.denied(&policy, &somebody()).await), (Some(0), Some(secs(3))));
    assert!(refund(third).await);
    stage.admitted(&policy, &somebody()).await;
    assert_eq!(named(&stage.denied(&policy, &somebody()).await), (Some(0), Some(secs(5))));
    assert_eq!(remaining(stage, &policy).await, [0, 992]);
}

/// A rule for duplicates looks at no cost: closed, it denies every call, also one that pays only in a unit.
pub async fn a_closed_rule_for_duplicates_denies_whatever_a_call_costs(stage: &Stage) {
    let (tokens, somebody) = (Rule::sliding_window(9, secs(60)).counting("tokens"), somebody());
    for (name, others) in [("calls", None), ("units", Some(tokens))] {
        let rules = Policy::builder(name).rule(Rule::duplicate(secs(60))).rules(others).build();
        let policy = rules.expect("the rules are sound").with_counts([0, 9]);
        for cost in [0, 1, 0] {
            let check = stage.limiter().check(&policy, &somebody).cost(cost);
            let decision = policy.units().fold(check, |check, unit| check.cost_of(unit, 1)).await;
            let denial = decision.expect("the backend answers").into_result().expect_err("the rule is closed");
            assert_eq!((denial.kind(), denial.retry_after()), (RejectionKind::Duplicate, None), "{policy:?}");
        }
    }
}

/// A refund gives back what the last 1,025 calls weigh, and nothing of those before: it would have to rewrite too much.
pub async fn a_refund_far_behind_the_last_call_gives_nothing_back(stage: &Stage) {
    let (policy, somebody) = (windows([(5_000, 60)]), somebody());
    let (far, near) = (permit(stage, &policy, 100).await, {
        stage.pass(MICROSECOND).await;
        permit(stage, &policy, 100).await
    });
    for _ in 0..DISTANCE {
        stage.pass(MICROSECOND).await;
        stage.admitted(&policy, &somebody).await;
    }
    let left = 5_000 - 200 - DISTANCE;
    assert!(!refund(far).await);
    assert_eq!(remaining(stage, &policy).await, [left]);
    assert!(refund(near).await);
    assert_eq!(remaining(stage, &policy).await, [left + 100]);
}

/// From 65,536 calls in the longest window on, calls that are close to each other count from the newest of them: so no
/// window holds more than the count, and a full one lacks no more than a few.
pub async fn a_dense_window_never_holds_more_than_its_count(stage: &Stage) {
    let (count, per, somebody) = (ENTRIES + 4_000, secs(600), somebody());
    // Calls of the same nine milliseconds share.
    let few = 16;
    let policy = windows([(count, 600)]);
    let mut random = fastrand::Rng::with_seed(16);
    let (mut now, mut admitted, mut denied) = (Duration::ZERO, VecDeque::new(), 0);
    while now < per * 6 / 5 {
        let is_admitted = stage.call(&policy, &somebody).await.is_allowed();
        admitted.extend(is_admitted.then_some(now));
        while admitted.front().is_some_and(|&call| call + per <= now) {
            admitted.pop_front();
        }
        let held = admitted.len() as u64;
        assert!(held <= count, "{held} within {per:?} at {now:?}");
        assert!(is_admitted || held + few > count, "denied beside {held} at {now:?}");
        denied += u64::from(!is_admitted);
        let step = Duration::from_micros(random.u64(1..13_000));
        stage.pass(step).await;
        now += step;
    }
    assert!(denied > 1_000, "{denied}");
}

/// Of so many calls that their window is dense, the first that shares an entry with the one before is the 65,537th.
pub async fn a_window_tells_65_536_calls_apart(stage: &Stage) {
    // Calls of the same eight minutes share.
    let per = secs(365 * 86_400);
    let policy = policy("weights", [Rule::sliding_window(2 * ENTRIES, per)]);
    for _ in 0..=ENTRIES {
        stage.admitted(&policy, &somebody()).await;
        stage.pass(MICROSECOND).await;
    }
    // Each of the last two counts until the end of the last.
    stage.pass(per.saturating_sub(4 * MICROSECOND)).await;
    for counted in [3, 2, 2, 0] {
        assert_eq!(remaining(stage, &policy).await, [2 * ENTRIES - counted]);
        stage.pass(MICROSECOND).await;
    }
}
