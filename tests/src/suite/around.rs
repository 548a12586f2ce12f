//! What callers need around a limit: several subjects, refunds, bans, looks that count nothing.

use std::time::Duration;

use tallygate::{Ban, Decision, Permit, Policy, RejectionKind, Rule, Subject, TokenBucket};

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

/// Rules of several subjects admit a call together or not at all, and the rule that denies is named by its place.
pub async fn subjects_are_charged_together_or_not_at_all(stage: &Stage) {
    let policy = Policy::builder("several")
        .rule(Rule::sliding_window(2, secs(60)))
        .rule_on("network", Rule::sliding_window(3, secs(600)))
        .rule(Rule::sliding_counter(9, secs(60)))
        .build()
        .expect("the rules are sound");
    let network = Subject::of("10.0.0.0/24");
    let call = async |phone: &str| {
        let phone = Subject::of(phone);
        let check = stage.limiter().check(&policy, &phone).subject("network", &network);
        check.report().await.expect("the backend answers")
    };
    for phone in ["a", "a", "b"] {
        assert!(call(phone).await.is_allowed());
    }
    // The phone denies, and the network is left as it was; then the network denies, and the phone is left as it was.
    let Decision::Denied(denial) = call("a").await else { panic!("`a` has made its two calls") };
    assert_eq!(denial.rule().map(|rule| rule.position()), Some(1), "the network waits longest");
    stage.pass(secs(60)).await;
    let Decision::Denied(denial) = call("c").await else { panic!("the network has made its three calls") };
    assert_eq!(denial.rule().map(|rule| rule.position()), Some(1));
    let report: Vec<_> = report_of(&call("c").await);
    assert_eq!(report, [(0, 2), (1, 0), (2, 9)]);
}

fn report_of(decision: &Decision) -> Vec<(usize, u64)> {
    decision.report().iter().map(|rule| (rule.position(), rule.remaining())).collect()
}

/// A call that leaves a subject out, or names one that no rule counts, is not decided.
pub async fn a_call_names_every_subject_and_no_other(stage: &Stage) {
    let policy = Policy::builder("several").rule_on("network", Rule::sliding_window(1, secs(60))).build();
    let (policy, subject) = (policy.expect("the rule is sound"), Subject::of("s"));
    let left_out = stage.limiter().check(&policy, &subject).await.expect_err("it names no network");
    assert!(left_out.to_string().contains("`network`"), "{left_out}");
    let stranger = stage.limiter().check(&policy, &subject).subject("user", &subject).await;
    assert!(stranger.expect_err("no rule is on a user").to_string().contains("`user`"));
    let named = stage.limiter().check(&policy, &subject).subject("network", &subject).await;
    assert!(named.expect("the backend answers").is_allowed());
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
    let bucket = |capacity| {
        limit(Rule::from_bucket(1, TokenBucket::new(secs(60)).with_capacity(capacity).with_reset_after(secs(7_200))))
    };
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

fn banning() -> Policy {
    let ban = Ban::new(3, secs(60), secs(3_600));
    Policy::builder("banning").rule(Rule::sliding_window(1, secs(10))).ban(ban).build().expect("the rules are sound")
}

/// Denials within the window lead to a ban, during which no rule is asked; after it they are counted anew.
pub async fn denials_lead_to_a_ban(stage: &Stage) {
    let (policy, subject) = (banning(), Subject::of("s"));
    stage.admitted(&policy, &subject).await;
    for _ in 0..3 {
        assert_eq!(stage.denied(&policy, &subject).await.kind(), RejectionKind::Limited);
    }
    let denial = stage.denied(&policy, &subject).await;
    assert_eq!((denial.kind(), denial.retry_after()), (RejectionKind::Banned, Some(secs(3_600))));
    assert!(denial.rule().is_none());
    stage.pass(Duration::from_micros(3_600_000_000 - 1)).await;
    assert_eq!(stage.denied(&policy, &subject).await.retry_after(), Some(Duration::from_micros(1)));
    stage.pass(Duration::from_micros(1)).await;
    stage.admitted(&policy, &subject).await;
    assert_eq!(stage.denied(&policy, &subject).await.kind(), RejectionKind::Limited);
}

/// Only denials within the window add up, wherever it starts.
pub async fn denials_far_apart_lead_to_no_ban(stage: &Stage) {
    let (policy, subject) = (banning(), Subject::of("s"));
    for _ in 0..20 {
        let _ = stage.call(&policy, &subject).await;
        assert_eq!(stage.denied(&policy, &subject).await.kind(), RejectionKind::Limited);
        stage.pass(secs(30)).await;
    }
}

/// A look counts neither a call nor a denial.
pub async fn a_peek_counts_nothing(stage: &Stage) {
    let (policy, subject) = (banning(), Subject::of("s"));
    for _ in 0..5 {
        assert!(stage.limiter().peek(&policy, &subject).await.expect("the backend answers").is_allowed());
    }
    stage.admitted(&policy, &subject).await;
    for _ in 0..5 {
        assert!(!stage.limiter().peek(&policy, &subject).await.expect("the backend answers").is_allowed());
    }
    assert_eq!(stage.denied(&policy, &subject).await.kind(), RejectionKind::Limited);
}

/// A reset forgets everything, and touches no other subject.
pub async fn a_reset_forgets_everything(stage: &Stage) {
    let (policy, subject, other) = (banning(), Subject::of("s"), Subject::of("other"));
    stage.admitted(&policy, &other).await;
    for _ in 0..5 {
        let _ = stage.call(&policy, &subject).await;
    }
    assert_eq!(stage.denied(&policy, &subject).await.kind(), RejectionKind::Banned);
    stage.limiter().check(&policy, &subject).reset().await.expect("the backend answers");
    stage.admitted(&policy, &subject).await;
    assert_eq!(stage.denied(&policy, &other).await.kind(), RejectionKind::Limited);
}

/// A ban by hand lasts ten years at most and a microsecond at least, so none of them is silently none.
pub async fn a_ban_by_hand_holds_however_long_or_short_it_is(stage: &Stage) {
    let (policy, subject) = (banning(), Subject::of("s"));
    let bans = [(Duration::MAX, secs(3_660 * 86_400)), (Duration::from_nanos(1), Duration::from_micros(1))];
    for (asked, lasts) in bans {
        stage.limiter().check(&policy, &subject).ban(asked).await.expect("the policy has a ban");
        let denial = stage.denied(&policy, &subject).await;
        assert_eq!((denial.kind(), denial.retry_after()), (RejectionKind::Banned, Some(lasts)), "{asked:?}");
    }
}

/// A ban by hand holds until it ends by itself or by hand, whether the subject is known or not.
pub async fn a_subject_can_be_banned_and_unbanned_by_hand(stage: &Stage) {
    let (policy, limiter) = (banning(), stage.limiter());
    for subject in [Subject::of("new"), Subject::of("known")] {
        if subject == Subject::of("known") {
            stage.admitted(&policy, &subject).await;
            stage.pass(secs(10)).await;
        }
        limiter.check(&policy, &subject).ban(secs(7_200)).await.expect("the policy has a ban");
        assert_eq!(stage.denied(&policy, &subject).await.kind(), RejectionKind::Banned);
        limiter.check(&policy, &subject).unban().await.expect("the policy has a ban");
        stage.admitted(&policy, &subject).await;
    }
    let refused = limiter.check(&limit(Rule::sliding_window(1, secs(1))), &Subject::of("s")).ban(secs(1)).await;
    assert!(refused.expect_err("the policy has no ban").to_string().contains("has no ban"));
}
