//! Several processes that share a limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tallygate::{Limiter, Policy, Rule};
use tallygate_harness::server::{Server, connected, patient};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, timeout};

use super::busy::{SECOND, tenant};

/// Calls until all callers together had so many calls admitted. Returns those of this one: when each began, and when it was
/// answered.
async fn hammer(limiter: Limiter, policy: Policy, wanted: Arc<AtomicUsize>) -> Vec<(Instant, Instant)> {
    let subject = tenant();
    let mut admitted = Vec::new();
    while wanted.load(Ordering::Relaxed) > 0 {
        let began = Instant::now();
        if limiter.check(&policy, &subject).await.unwrap().is_allowed() {
            admitted.push((began, Instant::now()));
            let _ = wanted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |wanted| wanted.checked_sub(1));
        }
        yield_now().await;
    }
    admitted
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_go_on_and_admit_no_more_than_the_count_in_any_window() {
    const COUNT: usize = 500;
    const PER: Duration = Duration::from_millis(500);
    let server = Server::start();
    let ahead = PER / 10;
    let rule = Rule::sliding_window(COUNT as u64, PER);
    let policy = Policy::builder("tenant").rule(rule).prefetch(ahead).build().unwrap();
    let wanted = Arc::new(AtomicUsize::new(8 * COUNT));
    let mut calls = JoinSet::new();
    for _ in 0..4 {
        let limiter = connected(&patient().denial_cache(SECOND), &server.url()).await;
        for _ in 0..4 {
            calls.spawn(hammer(limiter.clone(), policy.clone(), Arc::clone(&wanted)));
        }
    }
    let mut admitted = timeout(180 * SECOND, calls.join_all()).await.expect("each window admits calls").concat();
    admitted.sort();
    for (first, &(began, _)) in admitted.iter().enumerate() {
        let within = admitted[first..].iter().take_while(|(other, _)| *other < began + PER);
        let within = within.filter(|(_, answered)| *answered < began + PER).count();
        assert!(within <= COUNT, "{within} in one window");
    }
}
