//! Callers that wait notice room as soon as it is made, and hear at once that none will come in time.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tallygate::config::Policies;
use tallygate::{Ban, Check, Permit, Policy, RejectionKind, Rule, Subject};
use tokio::task::JoinSet;

use super::secs;
use crate::stage::Stage;

const HOUR: Duration = Duration::from_secs(3_600);

fn limit(name: &str, rules: impl IntoIterator<Item = Rule>) -> Policy {
    Policy::builder(name.to_owned()).rules(rules).build().expect("the rules are sound")
}

fn hourly(name: &str) -> Policy {
    limit(name, [Rule::sliding_window(1, HOUR)])
}

fn check<'a>(stage: &'a Stage, policy: &'a Policy, subject: &'a Subject) -> Check<'a> {
    stage.limiter().check(policy, subject)
}

async fn permit(stage: &Stage, policy: &Policy, subject: &Subject, cost: u64) -> Permit {
    let decision = check(stage, policy, subject).cost(cost).refundable().await;
    decision.expect("the backend answers").into_result().expect("there is room")
}

/// Lets a caller wait while something makes room, and expects that it is admitted although no time passes.
async fn is_woken_by(stage: &Stage, policy: &Policy, subject: &Subject, make_room: impl Future<Output = ()>) {
    let before = stage.now();
    let mut waiting = pin!(stage.limiter().acquire(policy, subject).into_future());
    // Each of these has its answer after the caller before has its own, which then sleeps.
    for _ in 0..10 {
        tokio::select! {
            biased;
            decision = &mut waiting => panic!("there is no room for {decision:?}"),
            peeked = stage.limiter().peek(policy, subject).into_future() => {
                assert!(!peeked.expect("the backend answers").is_allowed());
            }
        }
    }
    let (decision, ()) = tokio::join!(waiting, make_room);
    assert!(decision.expect("the backend answers").is_allowed());
    assert_eq!(stage.now(), before, "it was woken");
}

/// A refund and a settlement make room.
pub async fn what_is_given_back_wakes_a_caller_that_waits(stage: &Stage) {
    let (subject, policy) = (Subject::of("alice"), hourly("waits.refund"));
    let admitted = permit(stage, &policy, &subject, 1).await;
    let refund = async { assert!(admitted.refund().await.expect("the backend answers")) };
    is_woken_by(stage, &policy, &subject, refund).await;

    let policy = limit("waits.settle", [Rule::sliding_window(5, HOUR)]);
    let admitted = permit(stage, &policy, &subject, 5).await;
    let settle = async { assert!(admitted.settle(3).await.expect("the backend answers")) };
    is_woken_by(stage, &policy, &subject, settle).await;
}

/// So do a reset and the end of a ban.
pub async fn a_reset_and_the_end_of_a_ban_wake_a_caller_that_waits(stage: &Stage) {
    let (subject, policy) = (Subject::of("alice"), hourly("waits.reset"));
    stage.admitted(&policy, &subject).await;
    let reset = async { _ = check(stage, &policy, &subject).reset().await.expect("the backend answers") };
    is_woken_by(stage, &policy, &subject, reset).await;
    let reset_all = async { _ = check(stage, &policy, &subject).reset_all().await.expect("the backend answers") };
    is_woken_by(stage, &policy, &subject, reset_all).await;

    let ban = Ban::new(100, HOUR, HOUR);
    let builder = Policy::builder("waits.unban").rule(Rule::sliding_window(9, HOUR)).ban(ban);
    let policy = builder.build().expect("the policy is sound");
    check(stage, &policy, &subject).ban(HOUR).await.expect("the backend answers");
    let unban = async { _ = check(stage, &policy, &subject).unban().await.expect("the backend answers") };
    is_woken_by(stage, &policy, &subject, unban).await;
}

/// So do other rules: of an override that is set or cleared, and of a file.
pub async fn other_rules_wake_a_caller_that_waits(stage: &Stage) {
    let (subject, policy) = (Subject::of("alice"), hourly("waits.rules"));
    let overriding = || stage.limiter().override_policy("waits.rules").allow_unknown();
    stage.admitted(&policy, &subject).await;
    let set = async { overriding().text("2 per 1h").set().await.expect("the backend answers") };
    is_woken_by(stage, &policy, &subject, set).await;

    // The new rules count in other tallies, which the caller waits for from then on.
    overriding().text("1 per 2h").set().await.expect("the backend answers");
    stage.admitted(&policy, &subject).await;
    let reset = async { _ = check(stage, &policy, &subject).reset().await.expect("the backend answers") };
    is_woken_by(stage, &policy, &subject, reset).await;
    overriding().text("0 per 1h").subject(&subject).set().await.expect("the backend answers");
    check(stage, &policy, &subject).reset().await.expect("the backend answers");

    let policy = hourly("waits.file");
    stage.admitted(&policy, &subject).await;
    let file = Policies::from_toml("[policy.'waits.file']\nrules = ['2 per 1h']").expect("the file is right");
    let apply = async { drop(stage.limiter().apply(&file).expect("the file fits")) };
    is_woken_by(stage, &policy, &subject, apply).await;
}

/// An override that expires makes room at its end.
pub async fn the_end_of_an_override_wakes_a_caller_that_waits(stage: &Stage) {
    let (subject, policy) = (Subject::of("alice"), limit("waits.end", [Rule::sliding_window(9, HOUR)]));
    let overriding = stage.limiter().override_policy("waits.end").allow_unknown();
    // No look is at that time.
    let lasts = Duration::from_millis(1_234);
    overriding.text("1 per 1h").expires_in(lasts).set().await.expect("the backend answers");
    stage.admitted(&policy, &subject).await;
    let waiting = stage.limiter().acquire(&policy, &subject).into_future();
    let (decision, ()) = tokio::join!(waiting, async {
        for _ in 0..10 {
            assert!(!stage.call(&policy, &subject).await.is_allowed());
        }
        stage.pass(lasts).await;
    });
    assert!(decision.expect("the backend answers").is_allowed());
}

/// A caller behind the first goes on, too, whatever it knew when it came.
pub async fn room_reaches_every_caller_of_a_queue(stage: &Stage) {
    let (subject, policy) = (Subject::of("alice"), limit("waits.all", [Rule::sliding_window(5, HOUR)]));
    let admitted = permit(stage, &policy, &subject, 5).await;
    let before = stage.now();
    let mut waiting = JoinSet::new();
    for _ in 0..5 {
        let (limiter, policy, subject) = (stage.limiter().clone(), policy.clone(), subject.clone());
        waiting.spawn(async move { limiter.acquire(&policy, &subject).await });
    }
    for _ in 0..10 {
        assert!(!stage.call(&policy, &subject).await.is_allowed());
        tokio::task::yield_now().await;
    }
    assert!(admitted.refund().await.expect("the backend answers"));
    for decision in waiting.join_all().await {
        assert!(decision.expect("the backend answers").is_allowed());
    }
    assert_eq!(stage.now(), before);
}

/// A caller that cannot be served in its time is told so at once: as the first of the queue has to wait longer, or as too many
/// are in front of it.
pub async fn a_caller_that_cannot_be_served_in_time_hears_so_at_once(stage: &Stage) {
    let subject = Subject::of("alice");
    for (number, rule) in [Rule::sliding_window(50, secs(60)), Rule::fixed_window(50, secs(60))].into_iter().enumerate()
    {
        let (policy, before) = (limit(&format!("waits.long{number}"), [rule]), stage.now());
        let mut calls = JoinSet::new();
        for _ in 0..240 {
            let (limiter, policy, subject) = (stage.limiter().clone(), policy.clone(), subject.clone());
            calls.spawn(async move { limiter.check(&policy, &subject).wait(secs(120)).await });
        }
        let (mut admitted, mut denied) = (0, 0);
        while admitted + denied < 140 {
            let decision = calls.join_next().await.expect("not all wait").unwrap().expect("the backend answers");
            match decision.into_result() {
                Ok(_) => admitted += 1,
                Err(denial) => {
                    assert_eq!((denial.kind(), denial.retry_after()), (RejectionKind::Limited, Some(secs(60))));
                    denied += 1;
                }
            }
        }
        assert_eq!((admitted, denied), (50, 90));
        assert_eq!(stage.now(), before, "they are told at once");
        // All others are served.
        for _ in 0..2 {
            stage.pass(secs(60)).await;
            for _ in 0..50 {
                let decision = calls.join_next().await.expect("they wait").unwrap().expect("the backend answers");
                assert!(decision.is_allowed(), "{decision:?}");
            }
        }
    }
    let policy = hourly("waits.short");
    stage.admitted(&policy, &subject).await;
    let before = stage.now();
    let mut first = pin!(stage.limiter().acquire(&policy, &subject).into_future());
    let late = async {
        for _ in 0..3 {
            let denial = check(stage, &policy, &subject).wait(secs(1_800)).await.expect("the backend answers");
            assert_eq!(denial.into_result().map(drop).unwrap_err().retry_after(), Some(HOUR));
        }
    };
    tokio::select! {
        biased;
        decision = &mut first => panic!("there is no room for {decision:?}"),
        () = late => {}
    }
    assert_eq!(stage.now(), before, "they are told at once");
}

/// A cheaper caller than the first of its queue may be served at its deadline, and is not turned away before. What it asked before
/// it waits counts towards no ban.
pub async fn a_cheap_caller_behind_a_costly_one_is_served_at_its_deadline(stage: &Stage) {
    let builder = |name| Policy::builder(name).rule(Rule::sliding_window(10, secs(600)));
    let banning = builder("waits.cheap.ban").ban(Ban::new(1, HOUR, HOUR));
    for policy in [builder("waits.cheap"), banning].map(|builder| builder.build().expect("the policy is sound")) {
        cheap_is_served(stage, &policy).await;
    }
}

async fn cheap_is_served(stage: &Stage, policy: &Policy) {
    let subject = Subject::of("alice");
    stage.admitted(policy, &subject).await;
    stage.pass(secs(300)).await;
    drop(permit(stage, policy, &subject, 9).await);
    // Room for one comes in 300 seconds, for ten in 600.
    let wait = |cost, wait| {
        let (limiter, policy, subject) = (stage.limiter().clone(), policy.clone(), subject.clone());
        tokio::spawn(async move { limiter.check(&policy, &subject).cost(cost).wait(wait).await })
    };
    let is_full = async || {
        for _ in 0..10 {
            tokio::task::yield_now().await;
            assert!(!stage.limiter().peek(policy, &subject).await.expect("the backend answers").is_allowed());
        }
    };
    let costly = wait(10, secs(3_600));
    is_full().await;
    let cheap = wait(1, secs(400));
    is_full().await;
    stage.pass(secs(400)).await;
    assert!(cheap.await.unwrap().expect("the backend answers").is_allowed());
    costly.abort();
}
