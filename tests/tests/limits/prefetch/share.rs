//! Several processes that share a limit.

use std::time::Duration;

use tallygate::{Limiter, Policy, Rule};
use tallygate_harness::server::{Server, connected, patient};
use tokio::task::{JoinSet, yield_now};
use tokio::time::Instant;

use super::busy::{SECOND, tenant};

/// Calls on and on for a while. Returns the admitted ones: when each began, and when it was answered.
async fn hammer(limiter: Limiter, policy: Policy, until: Instant) -> Vec<(Instant, Instant)> {
    let subject = tenant();
    let mut admitted = Vec::new();
    while Instant::now() < until {
        let began = Instant::now();
        if limiter.check(&policy, &subject).await.unwrap().is_allowed() {
            admitted.push((began, Instant::now()));
        }
        yield_now().await;
    }
    admitted
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_admit_no_more_than_the_count_in_any_window_and_use_most_of_it() {
    const COUNT: usize = 500;
    const PER: Duration = Duration::from_millis(500);
    let server = Server::start();
    let ahead = PER / 10;
    let rule = Rule::sliding_window(COUNT as u64, PER);
    let policy = Policy::builder("tenant").rule(rule).prefetch(ahead).build().unwrap();
    let until = Instant::now() + 8 * PER;
    let mut calls = JoinSet::new();
    for _ in 0..4 {
        let limiter = connected(&patient().denial_cache(SECOND), &server.url()).await;
        for _ in 0..4 {
            calls.spawn(hammer(limiter.clone(), policy.clone(), until));
        }
    }
    let mut admitted = calls.join_all().await.concat();
    admitted.sort();
    for (first, &(began, _)) in admitted.iter().enumerate() {
        let within = admitted[first..].iter().take_while(|(other, _)| *other < began + PER);
        let within = within.filter(|(_, answered)| *answered < began + PER).count();
        assert!(within <= COUNT, "{within} in one window");
    }
    // Less than what the wider window leaves, as the machine may be busy.
    assert!(admitted.len() >= 4 * COUNT, "{} admitted", admitted.len());
}
