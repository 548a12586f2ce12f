//! Rules that are overridden while running: for everybody or for one subject, in one process or in all.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod everywhere;
mod shared;

use std::time::Duration;

use tallygate::{Decision, Denial, Limiter, Policy, Rule, Subject};
use tokio::time::{sleep, timeout};

const HOUR: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(30);

fn hourly(count: u64) -> Rule {
    Rule::sliding_window(count, HOUR)
}

fn policy(count: u64) -> Policy {
    Policy::builder("over.ride").rule(hourly(count)).build().unwrap()
}

fn subject() -> Subject {
    Subject::of("user").and("some:body")
}

async fn override_rules(limiter: &Limiter, count: u64) {
    limiter.override_rules("over.ride", [hourly(count)]).await.unwrap();
}

async fn allowed(limiter: &Limiter, policy: &Policy) -> bool {
    limiter.check(policy, &subject()).await.unwrap().is_allowed()
}

async fn denied(limiter: &Limiter, policy: &Policy) -> Denial {
    match limiter.check(policy, &subject()).await.unwrap() {
        Decision::Denied(denial) => denial,
        allowed @ Decision::Allowed(_) => panic!("{allowed:?}"),
    }
}

/// Calls until one is denied, and returns how many were admitted.
async fn room(limiter: &Limiter, policy: &Policy, subject: &Subject) -> usize {
    let mut admitted = 0;
    while limiter.check(policy, subject).await.unwrap().is_allowed() {
        admitted += 1;
    }
    admitted
}

/// Calls until the condition holds. Whatever is asked for may take a refresh or two.
async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it comes true");
}
