//! Deciding in memory takes no memory and no waiting, once a subject is known.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::time::Duration;

use allocation_counter::measure;
use futures_util::FutureExt as _;
use tallygate::testing::ManualClock;
use tallygate::{Limiter, Policy, Subject};
use tallygate_tests::clocked::{START_US, time};
use tallygate_tests::mixes::mixes;

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

#[test]
fn allocations_are_counted() {
    assert!(measure(|| drop(Subject::of("x".repeat(1_000)))).count_total > 0);
}
