//! Deciding in memory takes no memory and no waiting, once a subject is known.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::time::Duration;

use allocation_counter::measure;
use futures_util::FutureExt as _;
use tallygate::testing::ManualClock;
use tallygate::{Decision, Limiter, Policy, Rejection, Rule, Subject, rate_limit};
use tallygate_harness::clocked::{START_US, time};
use tallygate_harness::mixes::mixes;

const MINUTE: Duration = Duration::from_secs(60);

/// Calls now and then, at a time that moves on, and returns how many calls were admitted.
fn calls(limiter: &Limiter, policy: &Policy, clock: &ManualClock, calls: u32) -> u32 {
    let subject = Subject::of("s");
    let mut admitted = 0;
    for _ in 0..calls {
        let decision = limiter.check(policy, &subject).into_future().now_or_never();
        admitted += u32::from(decision.expect("memory never waits").unwrap().is_allowed());
        clock.advance(Duration::from_secs(7));
    }
    admitted
}

#[test]
fn a_known_subject_is_decided_without_an_allocation_and_at_once() {
    for policy in mixes(MINUTE) {
        let clock = ManualClock::new(time(START_US));
        let limiter = Limiter::builder().clock(&clock).build_in_memory().unwrap();
        let _ = calls(&limiter, &policy, &clock, 100);
        let mut admitted = 0;
        let used = measure(|| admitted = calls(&limiter, &policy, &clock, 1_000));
        assert!((1..1_000).contains(&admitted) || policy.rules()[0].per().is_none(), "{admitted} by {policy:?}");
        assert_eq!((used.count_total, used.bytes_total), (0, 0), "{policy:?}");
    }
}

#[rate_limit(key = "sms:{text}/{number}", rule(count = 2, per = "1h"))]
async fn limited(text: &str, number: u64) -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(key = "{text}", rule(count = 20, per = "1h"), limiter = limiter, cost = cost, skip_if = cost > 10)]
async fn with_options(text: &String, cost: u64, limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

#[rate_limit(key = "{text}", rule(count = 2, per = "1h"))]
fn returned(text: &str) -> impl Future<Output = Result<(), Rejection>> {
    async move { Ok(()) }
}

#[test]
fn a_limited_function_allocates_nothing_for_a_known_subject() {
    let limiter = Limiter::in_memory();
    let name = "alice".to_owned();
    let calls = || {
        let at_once = |call: Option<Result<(), Rejection>>| drop(call.expect("memory never waits"));
        for _ in 0..10 {
            at_once(limited("alice", 7).now_or_never());
            at_once(with_options(&name, 3, &limiter).now_or_never());
            at_once(returned("alice").now_or_never());
        }
    };
    calls();
    let used = measure(calls);
    assert_eq!((used.count_total, used.bytes_total), (0, 0));
}

#[rate_limit(
    key = "{text}",
    unit("tokens", cost = tokens),
    rule(count = 9, per = "1h"),
    rule(count = 100, per = "1h", unit = "tokens")
)]
async fn in_tokens(text: &str, tokens: u64) -> Result<(), Rejection> {
    Ok(())
}

#[test]
fn a_call_that_pays_in_a_unit_allocates_nothing_for_a_known_subject() {
    let window = |count| Rule::sliding_window(count, MINUTE);
    let policy = Policy::builder("p").rule(window(9)).rule(window(100).counting("tokens")).build().unwrap();
    let (limiter, subject) = (Limiter::in_memory(), Subject::of("s"));
    let calls = || {
        for _ in 0..10 {
            let decision = limiter.check(&policy, &subject).cost_of("tokens", 15).into_future().now_or_never();
            drop(decision.expect("memory never waits").unwrap());
            drop(in_tokens("alice", 15).now_or_never().expect("memory never waits"));
        }
    };
    calls();
    let used = measure(calls);
    assert_eq!((used.count_total, used.bytes_total), (0, 0));
}

#[rate_limit(key = "{text}", concurrency(limit = 2, lease = "1h"))]
async fn concurrent(text: &str) -> Result<(), Rejection> {
    Ok(())
}

#[test]
fn a_concurrent_call_allocates_nothing_for_a_known_subject() {
    let policy = Policy::builder("p").rule(Rule::concurrency(2, MINUTE)).build().unwrap();
    let (limiter, subject) = (Limiter::in_memory(), Subject::of("s"));
    let calls = || {
        for _ in 0..10 {
            let decide = || limiter.check(&policy, &subject).into_future().now_or_never();
            let running = [decide(), decide()].map(|decision| decision.expect("memory never waits").unwrap());
            assert!(running.iter().all(Decision::is_allowed));
            concurrent("alice").now_or_never().expect("memory never waits").unwrap();
        }
    };
    calls();
    let used = measure(calls);
    assert_eq!((used.count_total, used.bytes_total), (0, 0));
}

#[test]
fn allocations_are_counted() {
    assert!(measure(|| drop(Subject::of("x".repeat(1_000)))).count_total > 0);
}
