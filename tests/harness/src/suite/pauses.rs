//! Pauses: the other side has said until when it accepts no calls.

use std::pin::{Pin, pin};
use std::time::Duration;

use tallygate::{
    BackendErrorKind, Ban, Deciding, Denial, Limiter, Policy, PolicyBuilder, RejectionKind, Rule, RuleStatus, Subject,
};

use tallygate::context::{self, Context};
use tokio::task::JoinSet;

use super::{MICROSECOND, policy, report_of, secs, somebody};
use crate::stage::Stage;

pub(super) fn rules(rules: impl IntoIterator<Item = Rule>) -> PolicyBuilder {
    Policy::builder("partner").rules(rules).pausable()
}

pub(super) fn pausable(builder: PolicyBuilder) -> Policy {
    builder.build().expect("the rules are sound")
}

pub(super) fn ten_a_minute() -> Policy {
    pausable(rules([Rule::sliding_window(10, secs(60))]))
}

/// Pauses a subject. While Redis is away, that cannot be stored, and holds all the same.
pub(super) async fn pause(stage: &Stage, policy: &Policy, subject: &Subject, length: Duration) {
    if let Err(error) = stage.limiter().check(policy, subject).pause(length).await {
        assert_eq!(error.kind(), BackendErrorKind::Away, "{error}");
    }
}

pub(super) fn assert_paused(denial: &Denial, retry_after: Duration) {
    assert_eq!((denial.kind(), denial.retry_after()), (RejectionKind::Paused, Some(retry_after)));
    assert!(denial.rule().is_none());
}

/// A paused subject is denied until the microsecond of its end, and nothing counts it.
pub async fn a_paused_subject_is_denied_until_the_end(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    stage.admitted(&policy, &subject).await;
    pause(stage, &policy, &subject, secs(30)).await;
    assert_paused(&stage.denied(&policy, &subject).await, secs(30));
    stage.admitted(&policy, &Subject::of("other")).await;
    stage.pass(secs(30).saturating_sub(MICROSECOND)).await;
    assert_paused(&stage.denied(&policy, &subject).await, MICROSECOND);
    stage.pass(MICROSECOND).await;
    assert_eq!(report_of(&stage.costly(&policy, &subject, 1).await), [(0, 8)]);
}

/// A pause may be said again: a shorter one leaves it, and a longer one lengthens it.
pub async fn a_shorter_pause_does_not_shorten_a_longer_one(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    for (said, lasts) in [(20, 20), (5, 20), (20, 20), (40, 40), (0, 40)] {
        pause(stage, &policy, &subject, secs(said)).await;
        assert_paused(&stage.denied(&policy, &subject).await, secs(lasts));
    }
    stage.pass(secs(40)).await;
    pause(stage, &policy, &subject, secs(3)).await;
    assert_paused(&stage.denied(&policy, &subject).await, secs(3));
}

/// Whoever looks at a pause hears who has said it, as long as it is the longest, and also while one call at a time is tried after it.
pub async fn a_pause_says_who_has_said_it(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    let status = async || {
        let status = stage.limiter().check(&policy, &subject).pause_status().await;
        // While Redis is away, nobody knows of a pause that this process was not told.
        let status = status.unwrap_or_else(|error| (error.kind() != BackendErrorKind::Away).then(|| panic!("{error}")));
        status.map(|status| (status.left(), status.operator().map(str::to_owned)))
    };
    let said = async |operator: &str, length| {
        context::scope(Context::new().with("operator", operator.to_owned()), pause(stage, &policy, &subject, length))
            .await;
    };
    let zoe = |left| Some((left, Some("zoe".to_owned())));
    assert_eq!(status().await, None);
    said("zoe", secs(30)).await;
    said("max", secs(10)).await;
    assert_eq!(status().await, zoe(secs(30)));
    pause(stage, &policy, &subject, secs(40)).await;
    assert_eq!(status().await, Some((secs(40), None)));
    said("zoe", secs(50)).await;
    stage.pass(secs(20)).await;
    assert_eq!(status().await, zoe(secs(30)));
    stage.pass(secs(40)).await;
    assert_eq!(status().await, zoe(secs(0)));
    stage.pass(secs(60)).await;
    assert_eq!(status().await, None);
}

/// No pause lasts longer than the longest: an hour, or what the policy says.
pub async fn a_pause_lasts_no_longer_than_the_longest(stage: &Stage) {
    let minute = pausable(rules([Rule::sliding_window(10, secs(60))]).longest_pause(secs(60)));
    for (policy, longest, subject) in [(ten_a_minute(), secs(3_600), "a"), (minute, secs(60), "b")] {
        pause(stage, &policy, &Subject::of(subject), Duration::MAX).await;
        assert_paused(&stage.denied(&policy, &Subject::of(subject)).await, longest);
    }
}

/// Subjects of other policies cannot be paused; the error says how they can.
pub async fn only_a_pausable_policy_can_be_paused(stage: &Stage) {
    let (policy, subject) = (policy("limits", [Rule::sliding_window(9, secs(60))]), somebody());
    let check = || stage.limiter().check(&policy, &subject);
    let permit = check().await.expect("the backend answers").into_result().expect("there is room");
    let refused = [check().pause(secs(1)).await, check().resume().await, permit.pause(secs(1)).await];
    for refused in refused {
        let error = refused.expect_err("the policy cannot be paused");
        assert_eq!(error.kind(), BackendErrorKind::Misuse);
        assert!(error.to_string().contains("make it pausable with `PolicyBuilder::pausable`"), "{error}");
    }
    stage.admitted(&policy, &subject).await;
}

/// A permit pauses the subject of its call, and can still be refunded.
pub async fn a_permit_pauses_the_subject_of_its_call(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    for refundable in [false, true] {
        let check = stage.limiter().check(&policy, &subject);
        let check = if refundable { check.refundable() } else { check };
        let permit = check.await.expect("the backend answers").into_result().expect("there is room");
        let paused = permit.pause(secs(10)).await;
        assert!(paused.is_ok() || paused.is_err_and(|error| error.kind() == BackendErrorKind::Away));
        assert_paused(&stage.denied(&policy, &subject).await, secs(10));
        assert_eq!(permit.refund().await.ok(), refundable.then_some(true));
        stage.pass(secs(10)).await;
    }
    assert_eq!(report_of(&stage.costly(&policy, &subject, 1).await), [(0, 8)]);
}

/// A paused subject pauses in all units and rules, and the other subjects of its calls are not charged either.
pub async fn a_pause_leaves_all_units_and_subjects_uncharged(stage: &Stage) {
    let builder = rules([Rule::sliding_window(9, secs(60)), Rule::sliding_window(90, secs(60)).counting("tokens")]);
    let builder = builder.rule_on("host", Rule::fixed_window(5, secs(600))).rule(Rule::concurrency(2, secs(60)));
    let (policy, subject, host) = (pausable(builder), somebody(), Subject::of("host"));
    let call = || stage.limiter().check(&policy, &subject).subject("host", &host).cost_of("tokens", 10).report();
    pause(stage, &policy, &subject, secs(10)).await;
    for _ in 0..3 {
        let decision = call().await.expect("the backend answers");
        assert_eq!(report_of(&decision), [(0, 9), (1, 90), (2, 5), (3, 2)]);
        assert_paused(&decision.into_result().expect_err("it is paused"), secs(10));
    }
    stage.pass(secs(10)).await;
    let permit = call().await.expect("the backend answers").into_result().expect("the pause is over");
    assert_eq!(permit.report().iter().map(RuleStatus::remaining).min(), Some(1));
}

/// A policy may let another subject than the main one be paused: its calls are denied, whatever their main subject.
pub async fn a_policy_may_let_another_subject_be_paused(stage: &Stage) {
    let rule = |count| Rule::sliding_window(count, secs(60));
    for tokens in [false, true] {
        let builder = Policy::builder("partner").rule(rule(10)).rule_on("host", rule(20)).pausable_on("host");
        let policy = pausable(if tokens { builder.rule_on("host", rule(90).counting("tokens")) } else { builder });
        let (limiter, hosts) = (stage.limiter(), ["x", "y"].map(|host| Subject::of(host).and(tokens)));
        let check = |account: &'static str, host| {
            let account = Subject::of(account);
            let (limiter, policy) = (limiter.clone(), policy.clone());
            async move {
                let decision = limiter.check(&policy, &account).subject("host", host).await;
                decision.expect("the backend answers").into_result()
            }
        };
        let permit = check("a", &hosts[0]).await.expect("there is room");
        if let Err(error) = permit.pause(secs(30)).await {
            assert_eq!(error.kind(), BackendErrorKind::Away, "{error}");
        }
        for account in ["a", "b"] {
            assert_paused(&check(account, &hosts[0]).await.expect_err("the host is paused"), secs(30));
            check(account, &hosts[1]).await.expect("no other is paused");
        }
        stage.pass(secs(30)).await;
        let tried = check("b", &hosts[0]).await.expect("it is tried");
        assert_paused(&check("a", &hosts[0]).await.expect_err("another one is tried"), secs(30));
        tried.succeeded().await.expect("the backend answers");
        let _open = check("a", &hosts[0]).await.expect("it is open");
        check("b", &hosts[0]).await.expect("it is open for all");
    }
    let policy = pausable(Policy::builder("p").rule(rule(10)).rule_on("host", rule(20)).pausable_on("host"));
    let left_out = stage.limiter().check(&policy, &somebody()).pause(secs(30)).await.expect_err("no host is named");
    assert!(left_out.to_string().contains("which the call left out"), "{left_out}");
}

/// Denials by a pause count towards no ban.
pub async fn a_pause_leads_to_no_ban(stage: &Stage) {
    let ban = Ban::new(2, secs(60), secs(600));
    let (policy, subject) = (pausable(rules([Rule::sliding_window(9, secs(60))]).ban(ban)), somebody());
    pause(stage, &policy, &subject, secs(10)).await;
    for _ in 0..5 {
        assert_paused(&stage.denied(&policy, &subject).await, secs(10));
    }
    stage.pass(secs(10)).await;
    stage.admitted(&policy, &subject).await;
}

/// Lets a caller wait, and asserts that it does. Each question has its answer after the caller has its own.
pub(super) async fn assert_asleep(
    stage: &Stage,
    policy: &Policy,
    subject: &Subject,
    mut waiting: Pin<&mut Deciding<'_>>,
) {
    for _ in 0..10 {
        tokio::select! {
            biased;
            decision = &mut waiting => panic!("it is paused, and yet there is {decision:?}"),
            peeked = stage.limiter().peek(policy, subject).into_future() => {
                assert!(!peeked.expect("the backend answers").is_allowed());
            }
        }
    }
}

/// A caller that waits is admitted when the pause ends, and hears at once if that is too late.
pub async fn a_caller_waits_for_the_end_of_a_pause(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    pause(stage, &policy, &subject, secs(10)).await;
    let late = stage.limiter().check(&policy, &subject).wait(secs(9)).await.expect("the backend answers");
    assert_paused(&late.into_result().expect_err("it is paused for longer"), secs(10));
    let mut waiting = pin!(stage.limiter().check(&policy, &subject).wait(secs(11)).into_future());
    assert_asleep(stage, &policy, &subject, waiting.as_mut()).await;
    stage.pass(secs(9)).await;
    assert_asleep(stage, &policy, &subject, waiting.as_mut()).await;
    let (decision, ()) = tokio::join!(waiting, stage.pass(secs(1)));
    assert!(decision.expect("the backend answers").is_allowed());
}

/// The end of a pause by hand admits at once, also those who wait.
pub async fn a_resumed_subject_is_admitted_at_once(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    pause(stage, &policy, &subject, secs(600)).await;
    let mut waiting = pin!(stage.limiter().check(&policy, &subject).wait(secs(900)).into_future());
    assert_asleep(stage, &policy, &subject, waiting.as_mut()).await;
    let resumed = stage.limiter().check(&policy, &subject).resume();
    let (decision, resumed) = tokio::join!(waiting, resumed);
    resumed.expect("the backend answers");
    assert!(decision.expect("the backend answers").is_allowed());
    stage.admitted(&policy, &subject).await;
    stage.limiter().check(&policy, &subject).resume().await.expect("nothing is paused");
}

/// Rules in shadow beside the others leave a pause in force.
pub async fn a_policy_with_rules_in_shadow_is_paused_as_others_are(stage: &Stage) {
    let (tried, host) = (Rule::sliding_window(1, secs(60)).shadow(), Subject::of("host"));
    let builder = rules([Rule::sliding_window(10, secs(60)), tried.clone()]).rule_on("host", tried);
    let (policy, subject) = (pausable(builder), somebody());
    let decide = async || {
        let decision = stage.limiter().check(&policy, &subject).subject("host", &host).await;
        decision.expect("the backend answers").into_result()
    };
    pause(stage, &policy, &subject, secs(10)).await;
    assert_paused(&decide().await.expect_err("it is paused"), secs(10));
    stage.pass(secs(10)).await;
    let permit = decide().await.expect("the pause is over");
    if let Err(error) = permit.pause(secs(20)).await {
        assert_eq!(error.kind(), BackendErrorKind::Away, "{error}");
    }
    assert_paused(&decide().await.expect_err("it is paused"), secs(20));
}

/// An override that only tries the rules of the main subject leaves its pause in force.
pub async fn an_override_that_puts_the_main_subject_in_shadow_leaves_its_pause_in_force(stage: &Stage) {
    let rule = |count| Rule::sliding_window(count, secs(60));
    let policy = pausable(rules([rule(10)]).rule_on("host", rule(20)));
    let (limiter, subject, host) = (stage.limiter(), somebody(), Subject::of("host"));
    let check = || limiter.check(&policy, &subject).subject("host", &host);
    limiter.override_policy(policy.name()).rules([rule(1).shadow()]).set().await.expect("the backend answers");
    check().pause(secs(60)).await.expect("the backend answers");
    let denied = check().report().await.expect("the backend answers").into_result().expect_err("it is paused");
    assert_paused(&denied, secs(60));
    // From now on, it is asked for again.
    stage.pass(secs(10)).await;
    for _ in 0..2 {
        let denied = check().await.expect("the backend answers").into_result().expect_err("it is paused");
        assert_paused(&denied, secs(50));
    }
    check().resume().await.expect("the backend answers");
    for _ in 0..2 {
        let permit = check().await.expect("the backend answers").into_result().expect("it is not paused");
        permit.pause(Duration::ZERO).await.expect("it can be paused");
    }
}

/// Other rules leave a pause in force.
pub async fn an_override_leaves_a_pause_in_force(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    pause(stage, &policy, &subject, secs(60)).await;
    let limiter = stage.limiter();
    limiter
        .override_policy(policy.name())
        .rules([Rule::fixed_window(3, secs(300))])
        .set()
        .await
        .expect("the backend answers");
    assert_paused(&stage.denied(&policy, &subject).await, secs(60));
    stage.pass(secs(60)).await;
    stage.admitted(&policy, &subject).await;
}

async fn denied_in(limiter: &Limiter, policy: &Policy, subject: &Subject) -> Denial {
    let decision = limiter.check(policy, subject).await.expect("the backend answers");
    decision.into_result().expect_err("it is paused")
}

/// Another process hears of a pause with its next call, whatever script decides it, and of its end, too.
pub async fn other_processes_hear_of_a_pause(stage: &Stage) {
    let other = stage.another().await;
    let windows = || rules([Rule::sliding_window(10, secs(60)), Rule::sliding_window(20, secs(600))]);
    let policies = [
        windows(),
        windows().rule(Rule::sliding_window(90, secs(60)).counting("tokens")),
        rules([Rule::token_bucket(10, secs(60))]),
        rules([Rule::sliding_window(10, secs(60)), Rule::concurrency(5, secs(60))]),
        rules([Rule::sliding_window(10, secs(60))]).ban(Ban::new(1, secs(60), secs(60))),
        windows().rule(Rule::sliding_window(1, secs(60)).shadow()),
    ];
    for (number, builder) in policies.into_iter().enumerate() {
        let (policy, subject) = (pausable(builder), Subject::of(number));
        stage.admitted(&policy, &subject).await;
        assert!(other.check(&policy, &subject).await.expect("the backend answers").is_allowed());
        stage.limiter().check(&policy, &subject).pause(secs(30)).await.expect("the backend answers");
        assert_paused(&denied_in(&other, &policy, &subject).await, secs(30));
        stage.pass(secs(10)).await;
        assert_paused(&denied_in(&other, &policy, &subject).await, secs(20));
        // It reports on the rules, which have counted nothing since.
        let peeked = other.peek(&policy, &subject).await.expect("the backend answers");
        assert_eq!(peeked.report().len(), policy.rules().iter().filter(|rule| !rule.is_shadow()).count());
        assert_paused(&peeked.into_result().expect_err("it is paused"), secs(20));
        stage.limiter().check(&policy, &subject).resume().await.expect("the backend answers");
        stage.admitted(&policy, &subject).await;
        // What another process has cached is soon over.
        stage.pass(secs(5)).await;
        assert!(other.check(&policy, &subject).await.expect("the backend answers").is_allowed());
    }
}

/// The process that was told hears, too, when another one ends the pause.
pub async fn a_pause_that_another_process_ends_is_over(stage: &Stage) {
    let (other, policy, subject) = (stage.another().await, ten_a_minute(), somebody());
    stage.limiter().check(&policy, &subject).pause(secs(60)).await.expect("the backend answers");
    other.check(&policy, &subject).resume().await.expect("the backend answers");
    stage.pass(secs(5)).await;
    stage.admitted(&policy, &subject).await;
}

/// Of calls that are sent together, those of a paused subject are denied, and the others are admitted.
pub async fn a_pause_concerns_only_its_subject_among_calls_that_are_sent_together(stage: &Stage) {
    for reports in [false, true] {
        let (other, policy) = (stage.another().await, ten_a_minute());
        for paused in [7, 40] {
            let subject = Subject::of(paused);
            stage.limiter().check(&policy, &subject).pause(secs(30)).await.expect("the backend answers");
        }
        let mut calls = JoinSet::new();
        for number in 0..60 {
            let (other, policy) = (other.clone(), policy.clone());
            calls.spawn(async move {
                let subject = Subject::of(number);
                let check = other.check(&policy, &subject);
                let decision = if reports { check.report().await } else { check.await };
                (number, decision.expect("the backend answers"))
            });
        }
        for (number, decision) in calls.join_all().await {
            assert_eq!(decision.is_allowed(), ![7, 40].contains(&number), "{number}: {decision:?}");
        }
    }
}
