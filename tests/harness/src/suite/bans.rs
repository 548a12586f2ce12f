//! Bans, by denials and by hand.

use std::time::Duration;

use tallygate::{Ban, Decision, Denial, Policy, RejectionKind, Rule, Subject, TokenBucket};

use super::{MICROSECOND, policy, report_of, secs};
use crate::stage::Stage;

fn banning() -> Policy {
    let ban = Ban::new(3, secs(60), secs(3_600));
    Policy::builder("banning").rule(Rule::sliding_window(1, secs(10))).ban(ban).build().expect("the rules are sound")
}

/// Denials within the window lead to a ban; after it they are counted anew.
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

/// Bans for a minute after the first denial.
fn banning_at_once(rules: impl IntoIterator<Item = Rule>) -> Policy {
    let ban = Ban::new(1, secs(60), secs(60));
    Policy::builder("banning").rules(rules).ban(ban).build().expect("the rules are sound")
}

/// A banned call waits for the end of the ban and for the rules, whichever takes longer.
pub async fn a_banned_call_waits_for_the_rules_too(stage: &Stage) {
    let policy = banning_at_once([Rule::sliding_window(100, secs(3_600))]);
    let subject = Subject::of("s");
    assert!(stage.costly(&policy, &subject, 100).await.is_allowed());
    assert_eq!(stage.denied(&policy, &subject).await.kind(), RejectionKind::Limited);
    stage.pass(secs(1)).await;
    assert_banned(&stage.denied(&policy, &subject).await, Some(secs(3_599)));
    stage.limiter().check(&policy, &subject).ban(secs(7_200)).await.expect("the policy has a ban");
    assert_banned(&stage.denied(&policy, &subject).await, Some(secs(7_200)));
    stage.pass(secs(7_200).saturating_sub(MICROSECOND)).await;
    assert_banned(&stage.denied(&policy, &subject).await, Some(MICROSECOND));
    stage.pass(MICROSECOND).await;
    stage.admitted(&policy, &subject).await;
}

fn assert_banned(denial: &Denial, retry_after: Option<Duration>) {
    assert_eq!((denial.kind(), denial.retry_after()), (RejectionKind::Banned, retry_after));
    assert!(denial.rule().is_none());
}

/// A banned call has no wait if a rule never admits it, or no longer admits it when the ban ends.
pub async fn a_banned_call_that_no_wait_admits_has_no_wait(stage: &Stage) {
    let bucket = TokenBucket::new(secs(1)).with_capacity(100).with_initial(2).with_reset_after(secs(30));
    let policy = banning_at_once([Rule::fixed_window(50, secs(60)), Rule::from_bucket(1, bucket)]);
    let subject = Subject::of("s");
    assert!(stage.costly(&policy, &subject, 2).await.is_allowed());
    stage.limiter().check(&policy, &subject).ban(secs(20)).await.expect("the policy has a ban");
    for (cost, wait) in [(1, Some(secs(20))), (5, Some(secs(20))), (51, None)] {
        assert_banned(&denial(stage.costly(&policy, &subject, cost).await), wait);
    }
    // Without calls, the bucket is unused before this ban ends, and then it holds two tokens.
    stage.limiter().check(&policy, &subject).ban(secs(30)).await.expect("the policy has a ban");
    for (cost, wait) in [(2, Some(secs(30))), (3, None)] {
        assert_banned(&denial(stage.costly(&policy, &subject, cost).await), wait);
    }
}

fn denial(decision: Decision) -> Denial {
    match decision {
        Decision::Denied(denial) => denial,
        allowed @ Decision::Allowed(_) => panic!("{allowed:?}"),
    }
}

/// A call during a ban is reported on, charges nothing, and is no denial that leads to another ban.
pub async fn a_banned_call_is_reported_on_and_counts_nowhere(stage: &Stage) {
    let rules =
        [Rule::sliding_window(3, secs(60)), Rule::fixed_window(4, secs(90)), Rule::sliding_counter(5, secs(120))];
    let (policy, subject) = (banning_at_once(rules), Subject::of("s"));
    stage.admitted(&policy, &subject).await;
    stage.limiter().check(&policy, &subject).ban(secs(10)).await.expect("the policy has a ban");
    for _ in 0..5 {
        let decision = stage.costly(&policy, &subject, 1).await;
        assert_eq!(report_of(&decision), [(0, 2), (1, 3), (2, 4)]);
        assert!(decision.report().iter().all(|rule| rule.reset() > secs(0)));
        assert_banned(&denial(decision), Some(secs(10)));
        assert_banned(&denial(stage.costly(&policy, &subject, 4).await), None);
    }
    stage.pass(secs(10)).await;
    assert_eq!(report_of(&stage.costly(&policy, &subject, 2).await), [(0, 0), (1, 1), (2, 2)]);
}

/// While one subject is banned, the rules on the others are asked too, and none is charged.
pub async fn a_ban_of_one_subject_leaves_the_others_uncharged(stage: &Stage) {
    let builder = Policy::builder("several").rule(Rule::sliding_window(9, secs(60)));
    let builder = builder.rule_on("network", Rule::fixed_window(1, secs(600))).ban(Ban::new(9, secs(60), secs(60)));
    let policy = builder.build().expect("the rules are sound");
    let call = async |user: &str, network: &str| {
        let (user, network) = (Subject::of(user), Subject::of(network));
        let check = stage.limiter().check(&policy, &user).subject("network", &network);
        check.report().await.expect("the backend answers")
    };
    assert!(call("a", "used").await.is_allowed());
    let (b, free) = (Subject::of("b"), Subject::of("free"));
    let check = stage.limiter().check(&policy, &b).subject("network", &free);
    check.ban(secs(60)).await.expect("the policy has a ban");
    for (network, wait, remaining) in [("free", secs(60), 1), ("used", secs(600), 0)] {
        for _ in 0..2 {
            let decision = call("b", network).await;
            assert_eq!(report_of(&decision), [(0, 9), (1, remaining)]);
            assert_banned(&denial(decision), Some(wait));
        }
    }
    assert!(call("a", "free").await.is_allowed());
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

/// A peek counts neither a call nor a denial.
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

/// A reset removes everything of a subject, and nothing of another.
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

/// A ban by hand lasts 3,660 days at most and a microsecond at least, so no ban is silently shortened or ignored.
pub async fn a_ban_by_hand_holds_however_long_or_short_it_is(stage: &Stage) {
    let (policy, subject) = (banning(), Subject::of("s"));
    let longest = secs(3_660 * 86_400);
    let longer = stage.limiter().check(&policy, &subject).ban(longest + Duration::from_nanos(1)).await;
    let refused = longer.expect_err("no ban is that long").to_string();
    assert!(refused.contains("a ban lasts 3660d at most"), "{refused}");
    let bans = [(longest, longest), (Duration::from_nanos(1), Duration::from_micros(1))];
    for (asked, lasts) in bans {
        stage.limiter().check(&policy, &subject).ban(asked).await.expect("the policy has a ban");
        let denial = stage.denied(&policy, &subject).await;
        assert_eq!((denial.kind(), denial.retry_after()), (RejectionKind::Banned, Some(lasts)), "{asked:?}");
    }
}

/// A ban by hand holds until it ends by itself or by hand, whether the subject is known or not.
pub async fn a_subject_can_be_banned_and_unbanned_by_hand(stage: &Stage) {
    let (banning, limiter) = (banning(), stage.limiter());
    for subject in [Subject::of("new"), Subject::of("known")] {
        if subject == Subject::of("known") {
            stage.admitted(&banning, &subject).await;
            stage.pass(secs(10)).await;
        }
        limiter.check(&banning, &subject).ban(secs(7_200)).await.expect("the policy has a ban");
        assert_eq!(stage.denied(&banning, &subject).await.kind(), RejectionKind::Banned);
        limiter.check(&banning, &subject).unban().await.expect("the policy has a ban");
        stage.admitted(&banning, &subject).await;
    }
    let without_ban = policy("limits", [Rule::sliding_window(1, secs(1))]);
    let refused = limiter.check(&without_ban, &Subject::of("s")).ban(secs(1)).await;
    assert!(refused.expect_err("the policy has no ban").to_string().contains("has no ban"));
}
