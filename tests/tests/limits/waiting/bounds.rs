//! The number of callers that wait is bounded.

use std::pin::pin;
use std::time::Duration;

use tallygate::{Decision, Limiter, Policy, Rule, Subject};
use tokio::time::{Instant, advance, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn limit(rule: Rule) -> Policy {
    Policy::builder("bounded").rule(rule).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn no_more_callers_wait_than_may_over_all_queues_and_the_others_are_denied_at_once() {
    let limiter = Limiter::builder().max_waiting(2).build_in_memory().unwrap();
    let policy = limit(Rule::sliding_window(1, 10 * SECOND));
    let subjects = ["a", "b"].map(Subject::of);
    for subject in &subjects {
        assert!(limiter.check(&policy, subject).await.unwrap().is_allowed());
    }
    let came = Instant::now();
    let calls = subjects.each_ref().map(|subject| limiter.acquire(&policy, subject).into_future());
    let [mut first, second] = calls.map(Box::pin);
    let mut second = pin!(second);
    assert!(timeout(Duration::ZERO, &mut first).await.is_err());
    assert!(timeout(Duration::ZERO, &mut second).await.is_err());
    let Decision::Denied(denial) = limiter.acquire(&policy, &subjects[0]).await.unwrap() else {
        panic!("two wait already")
    };
    assert_eq!((denial.retry_after(), came.elapsed()), (Some(10 * SECOND), Duration::ZERO));
    drop(first);
    let again = limiter.acquire(&policy, &subjects[0]).into_future();
    advance(10 * SECOND).await;
    assert!(again.await.unwrap().is_allowed() && second.await.unwrap().is_allowed());
}

#[tokio::test(start_paused = true)]
async fn a_queue_turns_away_by_the_tightest_of_its_rules_and_by_cost() {
    let limiter = Limiter::in_memory();
    let rules = [Rule::sliding_window(100, SECOND), Rule::token_bucket(12, 4 * SECOND)];
    let policy = Policy::builder("bounded").rules(rules).build().unwrap();
    let subject = Subject::of("s");
    assert!(limiter.check(&policy, &subject).cost(12).await.unwrap().is_allowed());
    let mut calls: Vec<_> = (0..20)
        .map(|_| {
            let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject.clone());
            tokio::spawn(async move {
                let came = Instant::now();
                let decision = limiter.check(&policy, &subject).cost(2).wait(8 * SECOND).await.unwrap();
                (decision.is_allowed(), came.elapsed())
            })
        })
        .collect();
    let mut denied = 0;
    let mut admitted = 0;
    for call in calls.drain(..) {
        match call.await.unwrap() {
            (true, _) => admitted += 1,
            (false, after) => {
                assert_eq!(after, Duration::ZERO);
                denied += 1;
            }
        }
    }
    // Three tokens flow in per second: 24 in all.
    assert_eq!((admitted, denied), (12, 8));
}
