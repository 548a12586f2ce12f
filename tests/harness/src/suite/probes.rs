//! Probes: after a pause, one call at a time is admitted until one has succeeded.

use std::pin::pin;
use std::time::Duration;

use tallygate::{BackendErrorKind, Denial, Limiter, Permit, Policy, RejectionKind, Rule, Subject};

use super::pauses::{assert_asleep, assert_paused, pausable, pause, rules, ten_a_minute};
use super::{secs, somebody};
use crate::stage::Stage;

async fn decide(limiter: &Limiter, policy: &Policy, subject: &Subject) -> Result<Permit, Denial> {
    limiter.check(policy, subject).await.expect("the backend answers").into_result()
}

async fn tried(stage: &Stage, policy: &Policy, subject: &Subject) -> Permit {
    decide(stage.limiter(), policy, subject).await.expect("it is tried")
}

/// Asserts that another call is tried, at most for that long.
async fn assert_one_is_tried(stage: &Stage, policy: &Policy, subject: &Subject, at_most: Duration) {
    assert_paused(&stage.denied(policy, subject).await, at_most);
}

/// Asserts that calls are admitted beside each other.
async fn assert_open(limiter: &Limiter, policy: &Policy, subject: &Subject) {
    let first = decide(limiter, policy, subject).await.expect("the subject is open");
    decide(limiter, policy, subject).await.expect("the subject is open for all");
    drop(first);
}

/// Pauses a subject, and lets that time pass.
async fn pause_and_pass(stage: &Stage, policy: &Policy, subject: &Subject, length: Duration) {
    pause(stage, policy, subject, length).await;
    stage.pass(length).await;
}

/// After a pause, a call has the place until its permit is dropped. Then another one is tried, until one has succeeded.
pub async fn one_call_at_a_time_is_tried_after_a_pause_until_one_has_succeeded(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    pause_and_pass(stage, &policy, &subject, secs(10)).await;
    let first = tried(stage, &policy, &subject).await;
    assert_one_is_tried(stage, &policy, &subject, secs(10)).await;
    stage.pass(secs(1)).await;
    assert_one_is_tried(stage, &policy, &subject, secs(9)).await;
    decide(stage.limiter(), &policy, &Subject::of("other")).await.expect("it was not paused");
    drop(first);
    let second = tried(stage, &policy, &subject).await;
    assert_one_is_tried(stage, &policy, &subject, secs(9)).await;
    second.succeeded().await.expect("the backend answers");
    second.succeeded().await.expect("it may be said again");
    assert_open(stage.limiter(), &policy, &subject).await;
}

/// A call from before the pause says nothing about what is after it, nor does a refund.
pub async fn neither_a_call_from_before_a_pause_nor_a_refund_opens_its_subject(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    let old = tried(stage, &policy, &subject).await;
    pause_and_pass(stage, &policy, &subject, secs(10)).await;
    old.succeeded().await.expect("the backend answers");
    let check = stage.limiter().check(&policy, &subject).refundable();
    let refunded = check.await.expect("the backend answers").into_result().expect("it is tried");
    old.succeeded().await.expect("the backend answers");
    assert_one_is_tried(stage, &policy, &subject, secs(10)).await;
    assert!(refunded.refund().await.expect("the backend answers"));
    let _next = tried(stage, &policy, &subject).await;
    assert_one_is_tried(stage, &policy, &subject, secs(10)).await;
}

/// If the call that is tried is told to wait, the subject is paused again, and no earlier call opens it.
pub async fn a_tried_call_that_is_told_to_wait_pauses_again(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    pause_and_pass(stage, &policy, &subject, secs(10)).await;
    let first = tried(stage, &policy, &subject).await;
    if let Err(error) = first.pause(secs(20)).await {
        assert_eq!(error.kind(), BackendErrorKind::Away, "{error}");
    }
    assert_paused(&stage.denied(&policy, &subject).await, secs(20));
    stage.pass(secs(20)).await;
    let second = tried(stage, &policy, &subject).await;
    first.succeeded().await.expect("the backend answers");
    drop(first);
    assert_one_is_tried(stage, &policy, &subject, secs(20)).await;
    second.succeeded().await.expect("the backend answers");
    assert_open(stage.limiter(), &policy, &subject).await;
}

/// If another call is told to wait while one is tried, the success of that one does not end the pause.
pub async fn the_success_of_a_tried_call_does_not_end_a_pause_that_was_said_meanwhile(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    pause_and_pass(stage, &policy, &subject, secs(10)).await;
    let first = tried(stage, &policy, &subject).await;
    pause(stage, &policy, &subject, secs(20)).await;
    first.succeeded().await.expect("the backend answers");
    assert_paused(&stage.denied(&policy, &subject).await, secs(20));
    stage.pass(secs(20)).await;
    let _second = tried(stage, &policy, &subject).await;
    drop(first);
    assert_one_is_tried(stage, &policy, &subject, secs(20)).await;
}

/// A call that takes longer than a minute loses its place, and its success changes nothing any more.
pub async fn the_place_of_a_tried_call_is_free_after_a_minute(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    pause_and_pass(stage, &policy, &subject, secs(600)).await;
    let first = tried(stage, &policy, &subject).await;
    assert_one_is_tried(stage, &policy, &subject, secs(60)).await;
    stage.pass(secs(60)).await;
    let second = tried(stage, &policy, &subject).await;
    first.succeeded().await.expect("the backend answers");
    drop(first);
    assert_one_is_tried(stage, &policy, &subject, secs(60)).await;
    second.succeeded().await.expect("the backend answers");
    assert_open(stage.limiter(), &policy, &subject).await;
}

/// If for as long again nobody is told to wait, the subject is open, also while a call is tried.
pub async fn a_subject_is_open_after_as_long_again_without_a_pause(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    pause_and_pass(stage, &policy, &subject, secs(10)).await;
    let _tried = tried(stage, &policy, &subject).await;
    stage.pass(secs(10)).await;
    assert_open(stage.limiter(), &policy, &subject).await;
}

/// After a pause that was prolonged, one call at a time is tried for as long as after the one before.
pub async fn the_time_after_a_pause_gets_no_shorter_if_the_pause_is_prolonged(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    pause(stage, &policy, &subject, secs(10)).await;
    stage.pass(secs(9)).await;
    pause_and_pass(stage, &policy, &subject, secs(3)).await;
    let _tried = tried(stage, &policy, &subject).await;
    stage.pass(secs(9)).await;
    assert_one_is_tried(stage, &policy, &subject, secs(1)).await;
    stage.pass(secs(1)).await;
    assert_open(stage.limiter(), &policy, &subject).await;
}

/// A call that the rules deny gives its place back, and a peek takes none.
pub async fn a_call_that_the_rules_deny_and_a_peek_take_no_place(stage: &Stage) {
    let (policy, subject) = (pausable(rules([Rule::sliding_window(2, secs(60))])), somebody());
    stage.admitted(&policy, &subject).await;
    pause_and_pass(stage, &policy, &subject, secs(40)).await;
    let peek = || stage.limiter().peek(&policy, &subject);
    for _ in 0..2 {
        assert!(peek().await.expect("the backend answers").is_allowed());
    }
    let first = tried(stage, &policy, &subject).await;
    let peeked = peek().await.expect("the backend answers");
    assert_eq!(peeked.report().len(), 1);
    assert_paused(&peeked.into_result().expect_err("one is tried"), secs(40));
    drop(first);
    for _ in 0..3 {
        assert_eq!(stage.denied(&policy, &subject).await.kind(), RejectionKind::Limited);
    }
    stage.pass(secs(20)).await;
    stage.admitted(&policy, &subject).await;
}

/// A caller that waits, and whom the rules deny when it is tried, sleeps until they have room.
pub async fn a_caller_that_the_rules_deny_when_it_is_tried_sleeps_until_they_have_room(stage: &Stage) {
    let (policy, subject) = (pausable(rules([Rule::sliding_window(2, secs(60))])), somebody());
    stage.admitted(&policy, &subject).await;
    stage.admitted(&policy, &subject).await;
    pause(stage, &policy, &subject, secs(10)).await;
    let mut waiting = pin!(stage.limiter().check(&policy, &subject).wait(secs(90)).into_future());
    for at in [10, 20] {
        stage.pass(secs(10)).await;
        assert_asleep(stage, &policy, &subject, waiting.as_mut()).await;
        assert_eq!(stage.denied(&policy, &subject).await.kind(), RejectionKind::Limited, "{at}");
    }
    let (decision, ()) = tokio::join!(waiting, stage.pass(secs(40)));
    assert!(decision.expect("the backend answers").is_allowed());
}

/// A caller that waits is tried as soon as the place is free, although its deadline is before the latest time for that.
pub async fn a_caller_waits_for_the_place_of_a_tried_call(stage: &Stage) {
    let (policy, subject) = (ten_a_minute(), somebody());
    for succeeds in [false, true] {
        pause_and_pass(stage, &policy, &subject, secs(30)).await;
        let first = tried(stage, &policy, &subject).await;
        let mut waiting = pin!(stage.limiter().check(&policy, &subject).wait(secs(20)).into_future());
        assert_asleep(stage, &policy, &subject, waiting.as_mut()).await;
        if succeeds {
            first.succeeded().await.expect("the backend answers");
        } else {
            drop(first);
        }
        let second = waiting.await.expect("the backend answers").into_result().expect("the place is free");
        assert_eq!(stage.call(&policy, &subject).await.is_allowed(), succeeds);
        drop(second);
        stage.pass(secs(60)).await;
    }
}

/// Calls until one is tried: another process gives the place of its call back in the background.
async fn tried_soon(limiter: &Limiter, policy: &Policy, subject: &Subject) -> Permit {
    loop {
        if let Ok(permit) = decide(limiter, policy, subject).await {
            return permit;
        }
        tokio::task::yield_now().await;
    }
}

/// Calls of other processes are tried one at a time, too, and a success opens the subject for all.
pub async fn one_call_at_a_time_is_tried_in_all_processes(stage: &Stage) {
    let (other, subject) = (stage.another().await, somebody());
    let window = || rules([Rule::sliding_window(50, secs(60))]);
    let builders = [
        window(),
        window().rule(Rule::token_bucket(50, secs(60))),
        window().rule(Rule::concurrency(9, secs(60))),
        window().rule(Rule::sliding_window(90, secs(60)).counting("tokens")),
        window().rule(Rule::sliding_window(1, secs(60)).shadow()),
    ];
    for (number, builder) in builders.into_iter().enumerate() {
        let (policy, subject) = (pausable(builder), Subject::of(number).and(&subject));
        pause_and_pass(stage, &policy, &subject, secs(30)).await;
        let first = tried(stage, &policy, &subject).await;
        assert_paused(&decide(&other, &policy, &subject).await.expect_err("one is tried"), secs(30));
        drop(first);
        let second = tried_soon(&other, &policy, &subject).await;
        assert_one_is_tried(stage, &policy, &subject, secs(30)).await;
        second.succeeded().await.expect("the backend answers");
        for limiter in [stage.limiter(), &other] {
            assert_open(limiter, &policy, &subject).await;
        }
    }
}

/// The one call that is tried is also one where no rule in force counts the main subject.
pub async fn one_call_at_a_time_is_tried_although_no_rule_in_force_counts_its_subject(stage: &Stage) {
    let rule = |count| Rule::sliding_window(count, secs(60));
    let policy = pausable(rules([rule(10)]).rule_on("host", rule(20)));
    let (limiter, subject, host) = (stage.limiter(), somebody(), Subject::of("host"));
    let check = || limiter.check(&policy, &subject).subject("host", &host);
    limiter.override_policy(policy.name()).rules([rule(1).shadow()]).set().await.expect("the backend answers");
    check().pause(secs(30)).await.expect("the backend answers");
    stage.pass(secs(30)).await;
    let first = check().await.expect("the backend answers").into_result().expect("it is tried");
    let denied = check().await.expect("the backend answers").into_result().expect_err("one is tried");
    assert_paused(&denied, secs(30));
    first.succeeded().await.expect("the backend answers");
    let _open = check().await.expect("the backend answers").into_result().expect("it is open");
    assert!(check().await.expect("the backend answers").is_allowed());
}
