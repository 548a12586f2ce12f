//! Concurrency limits, on every backend.

use std::future::IntoFuture as _;
use std::time::Duration;

use tallygate::{Permit, Policy, RejectionKind, Rule, Subject};

use crate::stage::Stage;
use crate::until::until_found;

const LEASE: Duration = Duration::from_secs(600);
const HOUR: Duration = Duration::from_secs(3_600);

fn at_most(limit: u64) -> Policy {
    Policy::builder("export").rule(Rule::concurrency(limit, LEASE)).build().expect("the policy is valid")
}

/// How many more concurrent calls are allowed, by the report of the rule at that position.
async fn room(stage: &Stage, policy: &Policy, subject: &Subject, position: usize) -> u64 {
    let decision = stage.limiter().peek(policy, subject).await.expect("the backend answers");
    decision.report()[position].remaining()
}

/// Waits until this many more concurrent calls are allowed: in Redis, a lease is given back a moment after its permit
/// is dropped.
async fn until_room(stage: &Stage, policy: &Policy, subject: &Subject, position: usize, expected: u64) {
    let is_so = async || room(stage, policy, subject, position).await == expected;
    until_found("a lease was given back", is_so).await;
}

async fn permit(stage: &Stage, policy: &Policy, subject: &Subject) -> Permit {
    stage.call(policy, subject).await.into_result().expect("the call is admitted")
}

/// There are never more concurrent calls than the limit, and each makes room when its permit is dropped.
pub async fn no_more_calls_are_running_than_the_limit(stage: &Stage) {
    let (policy, subject) = (at_most(2), Subject::of("alice"));
    let first = permit(stage, &policy, &subject).await;
    let second = permit(stage, &policy, &subject).await;
    let denial = stage.denied(&policy, &subject).await;
    assert_eq!((denial.kind(), denial.rule().map(|rule| rule.count())), (RejectionKind::Concurrency, Some(2)));
    let wait = denial.retry_after().expect("a call may be over");
    assert!(!wait.is_zero() && wait <= LEASE, "{wait:?}");
    stage.admitted(&policy, &Subject::of("bob")).await;

    drop(first);
    until_room(stage, &policy, &subject, 0, 1).await;
    let third = permit(stage, &policy, &subject).await;
    assert!(!stage.call(&policy, &subject).await.is_allowed());
    drop((second, third));
    until_room(stage, &policy, &subject, 0, 2).await;
}

/// A denial by one rule takes no lease, and a denial for want of a lease charges no rule.
pub async fn leases_are_taken_with_all_rules_or_not_at_all(stage: &Stage) {
    let rules = [Rule::concurrency(2, LEASE), Rule::sliding_window(2, HOUR)];
    let (policy, subject) = (Policy::builder("both").rules(rules).build().unwrap(), Subject::of("alice"));
    let held = permit(stage, &policy, &subject).await;
    assert_eq!(room(stage, &policy, &subject, 1).await, 1);
    drop(permit(stage, &policy, &subject).await);
    until_room(stage, &policy, &subject, 0, 1).await;

    // The window is used up.
    let denial = stage.denied(&policy, &subject).await;
    assert_eq!((denial.kind(), denial.rule().map(|rule| rule.position())), (RejectionKind::Limited, Some(1)));
    assert_eq!(room(stage, &policy, &subject, 0).await, 1);

    stage.pass(HOUR).await;
    drop(held);
    until_room(stage, &policy, &subject, 0, 2).await;
    let held = [permit(stage, &policy, &subject).await, permit(stage, &policy.with_counts([2, 9]), &subject).await];
    let denial = stage.denied(&policy.with_counts([2, 9]), &subject).await;
    assert_eq!(denial.kind(), RejectionKind::Concurrency);
    assert_eq!(room(stage, &policy.with_counts([2, 9]), &subject, 1).await, 7);
    drop(held);
}

/// Each subject has its own concurrent calls.
pub async fn each_subject_has_concurrent_calls_of_its_own(stage: &Stage) {
    let policy = Policy::builder("report")
        .rule(Rule::concurrency(1, LEASE))
        .rule_on("tenant", Rule::concurrency(2, LEASE))
        .rule_on("tenant", Rule::sliding_window(9, HOUR))
        .build()
        .unwrap();
    let tenant = Subject::of("t");
    let call = async |user: &str| {
        let user = Subject::of(user);
        let call = stage.limiter().check(&policy, &user).subject("tenant", &tenant);
        call.await.expect("the backend answers").into_result()
    };
    let alice = call("alice").await.unwrap();
    let denial = call("alice").await.unwrap_err();
    assert_eq!(denial.rule().map(|rule| rule.position()), Some(0));
    let bob = call("bob").await.unwrap();
    let denial = call("carol").await.unwrap_err();
    assert_eq!((denial.kind(), denial.rule().map(|rule| rule.position())), (RejectionKind::Concurrency, Some(1)));
    drop(alice);
    until_found("the lease was given back", async || call("carol").await.is_ok()).await;
    drop(bob);
}

/// A call has one lease, whatever its cost. A call that costs nothing has none, and neither has a peek.
pub async fn a_concurrent_call_counts_once_whatever_its_cost(stage: &Stage) {
    let (policy, subject) = (at_most(3), Subject::of("alice"));
    let call = async |cost| stage.costly(&policy, &subject, cost).await.into_result().unwrap();
    let heavy = call(1_000_000).await;
    assert_eq!(heavy.report()[0].remaining(), 2);
    let weightless = call(0).await;
    let peek = stage.limiter().check(&policy, &subject).peek().await.unwrap();
    assert_eq!(room(stage, &policy, &subject, 0).await, 2);
    drop((weightless, peek));
    assert_eq!(room(stage, &policy, &subject, 0).await, 2);
    drop(heavy);
    until_room(stage, &policy, &subject, 0, 3).await;
}

/// A limit of nothing is closed.
pub async fn a_limit_of_no_concurrent_calls_is_closed(stage: &Stage) {
    let (policy, subject) = (at_most(1), Subject::of("alice"));
    let closed = policy.with_counts([0]);
    let denial = stage.denied(&closed, &subject).await;
    assert_eq!((denial.kind(), denial.retry_after()), (RejectionKind::Concurrency, None));
    stage.admitted(&policy, &subject).await;
}

/// A refund ends the call, and so does a settlement.
pub async fn a_call_whose_permit_is_refunded_is_over(stage: &Stage) {
    let rules = [Rule::sliding_window(100, HOUR), Rule::concurrency(1, LEASE)];
    let (policy, subject) = (Policy::builder("p").rules(rules).build().unwrap(), Subject::of("alice"));
    let call = async || {
        let call = stage.limiter().check(&policy, &subject).cost(10).refundable();
        call.await.expect("the backend answers").into_result()
    };
    let permit = call().await.unwrap();
    assert!(call().await.is_err());
    assert!(permit.refund().await.unwrap());
    until_room(stage, &policy, &subject, 1, 1).await;
    assert_eq!(room(stage, &policy, &subject, 0).await, 100);

    let permit = call().await.unwrap();
    assert!(permit.settle(30).await.unwrap());
    until_room(stage, &policy, &subject, 1, 1).await;
    assert_eq!(room(stage, &policy, &subject, 0).await, 70);
}

/// A reset forgets the concurrent calls, and each of them is over only once.
pub async fn a_reset_forgets_the_concurrent_calls(stage: &Stage) {
    let (policy, subject) = (at_most(1), Subject::of("alice"));
    let before = permit(stage, &policy, &subject).await;
    stage.limiter().check(&policy, &subject).reset().await.unwrap();
    let after = permit(stage, &policy, &subject).await;
    drop(before);
    // What is given back was forgotten, so the other call is still running.
    stage.pass(Duration::from_secs(1)).await;
    assert!(!stage.call(&policy, &subject).await.is_allowed());
    drop(after);
    until_room(stage, &policy, &subject, 0, 1).await;
}

/// A caller that waits is admitted as soon as a call is over, long before the lease ends.
pub async fn a_caller_that_waits_is_woken_when_a_call_is_over(stage: &Stage) {
    let (policy, subject) = (at_most(1), Subject::of("alice"));
    let first = permit(stage, &policy, &subject).await;
    let wait = stage.limiter().check(&policy, &subject).wait(LEASE);
    let before = stage.now();
    let (second, ()) = tokio::join!(wait, async {
        tokio::task::yield_now().await;
        drop(first);
    });
    // Its lease would have ended by itself later.
    assert_eq!(stage.now(), before);
    let second = second.expect("the backend answers");
    assert!(second.is_allowed(), "{second:?}");
}

/// So does a peek, and a call that costs nothing, which take no lease.
pub async fn a_call_that_takes_no_lease_waits_for_one_to_be_over(stage: &Stage) {
    let (policy, subject) = (at_most(1), Subject::of("alice"));
    let free = || stage.limiter().check(&policy, &subject);
    for check in [free().peek(), free().cost(0)] {
        until_room(stage, &policy, &subject, 0, 1).await;
        let first = permit(stage, &policy, &subject).await;
        let (decision, ()) = tokio::join!(check.wait(LEASE), async {
            tokio::task::yield_now().await;
            drop(first);
        });
        assert!(decision.expect("the backend answers").is_allowed());
    }
}

/// A duplicate beside a concurrent call waits for both: for the second it has no more than a bound.
pub async fn a_duplicate_waits_no_longer_than_its_window_and_the_concurrent_call(stage: &Stage) {
    const WINDOW: Duration = Duration::from_secs(5);
    let rules = [Rule::duplicate(WINDOW), Rule::concurrency(1, LEASE)];
    let policy = Policy::builder("export").rules(rules).build().expect("the policy is valid");
    let subject = Subject::of("alice");
    let first = permit(stage, &policy, &subject).await;
    let waits = stage.limiter().check(&policy, &subject).wait(LEASE.saturating_sub(WINDOW));
    let time_passes = async {
        tokio::task::yield_now().await;
        drop(first);
        until_room(stage, &policy, &subject, 1, 1).await;
        // Long before the wait is over. In Redis, an answer takes a moment.
        for _ in 0..100 {
            stage.pass(WINDOW).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        decision = waits.into_future() => assert!(decision.expect("the backend answers").is_allowed()),
        () = time_passes => panic!("it waits longer than its window and the concurrent call"),
    }
}
