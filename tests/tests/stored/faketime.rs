//! The clock of a server is set forward and back by a day between calls.
//!
//! Debian's `redis-server` does not start with libfaketime: both have a part in how memory is allocated.

use std::time::Duration;

use tallygate::{Decision, Limiter, Policy, Rule, Subject};
use tallygate_harness::faketime::FaketimeServer;
use tokio::task::JoinSet;

const HOUR: Duration = Duration::from_secs(3_600);
const COUNT: u64 = 3;
const CALLS: usize = 16;

/// The longest wait: a sliding counter counts the calls of a slot for a part of the next one, too.
const LONGEST: Duration = Duration::from_secs(2 * 3_600);

/// Makes calls at once, and returns how many are admitted. None of the others has to wait for a day.
async fn admitted(limiter: &Limiter, policy: &Policy) -> u64 {
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let (limiter, policy) = (limiter.clone(), policy.clone());
        calls.spawn(async move { limiter.check(&policy, &Subject::of("s")).await.unwrap() });
    }
    let mut admitted = 0;
    for decision in calls.join_all().await {
        match decision {
            Decision::Allowed(_) => admitted += 1,
            Decision::Denied(denial) => assert!(denial.retry_after().unwrap() <= LONGEST, "{denial:?}"),
        }
    }
    admitted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_a_day_forward_and_back_opens_each_window_once_where_libfaketime_runs() {
    let Some(server) = FaketimeServer::start() else { return };
    let limiter = server.server().limiter().await;
    let rules = [Rule::sliding_window, Rule::fixed_window, Rule::sliding_counter, Rule::token_bucket];
    for (number, rule) in rules.into_iter().enumerate() {
        let policy = Policy::builder(format!("p{number}")).rule(rule(COUNT, HOUR)).build().unwrap();
        // A window ends early where the clock goes forward, and hits of the future are forgotten where it goes back.
        for days in [0, 1, 0, -1, 0] {
            server.set_days_ahead(days);
            assert_eq!(admitted(&limiter, &policy).await, COUNT, "{days} days ahead under {policy:?}");
            assert_eq!(admitted(&limiter, &policy).await, 0, "{days} days ahead under {policy:?}");
        }
    }
}
