//! Many callers at once admit exactly as many as the rules say.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_lua::HIT_BYTES;
use tallygate_tests::load::{TASKS, admitted_at_once};
use tallygate_tests::server::{Server, ask};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// So long a window that nothing leaves it during a test.
const PER: Duration = Duration::from_secs(3_600);

fn policy(count: u64) -> Policy {
    let rules = [Rule::sliding_window(count, PER), Rule::sliding_window(count + 1, PER * 2)];
    Policy::builder("p").rules(rules).build().unwrap()
}

async fn admits_exactly_count_at_once(limiter: &Limiter) {
    for count in [1, 7, 64, 1_000] {
        assert_eq!(admitted_at_once(limiter, &policy(count), &Subject::of(count), 50).await, count);
    }
}

/// Several floods beside each other, each on a subject of its own.
async fn admits_exactly_count_on_each_subject_at_once(limiter: &Limiter) {
    let mut floods = JoinSet::new();
    for count in 1..=8 {
        let limiter = limiter.clone();
        floods.spawn(async move { (count, admitted_at_once(&limiter, &policy(count), &Subject::of(count), 10).await) });
    }
    for (count, admitted) in floods.join_all().await {
        assert_eq!(admitted, count);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_at_once_admit_exactly_count_in_memory() {
    admits_exactly_count_at_once(&Limiter::in_memory()).await;
    admits_exactly_count_on_each_subject_at_once(&Limiter::in_memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_at_once_admit_exactly_count_in_redis() {
    let server = Server::start();
    admits_exactly_count_at_once(&server.limiter().await).await;
    server.ask::<()>("FLUSHALL");
    admits_exactly_count_on_each_subject_at_once(&server.limiter().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_keeps_forgetting_its_scripts_loses_no_call() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let over = Arc::new(AtomicBool::new(false));
    let flushing = thread::spawn({
        let (mut connection, over) = (server.connection(), Arc::clone(&over));
        move || {
            while !over.load(Ordering::Relaxed) {
                ask::<()>(&mut connection, "SCRIPT FLUSH");
            }
        }
    });
    admits_exactly_count_at_once(&limiter).await;
    over.store(true, Ordering::Relaxed);
    flushing.join().unwrap();
    let errors: String = server.ask("INFO errorstats");
    assert!(errors.contains("errorstat_NOSCRIPT"), "calls met a server without the script: {errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_given_up_disturb_no_other() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(call_and_give_up_at_random(limiter.clone(), Subject::of(task)));
    }
    let mut connection = server.connection();
    for (subject, admitted, given_up) in tasks.join_all().await {
        let bytes: usize = ask(&mut connection, &format!("STRLEN tallygate:open:{subject}"));
        let counted = bytes / HIT_BYTES;
        assert!(admitted <= counted && counted <= admitted + given_up, "{admitted} <= {counted}, +{given_up}");
    }
}

/// Calls two policies in turn, of which one admits all and the other nothing more: a reply that reaches the wrong
/// caller shows. Returns how many calls were admitted, and how many of that kind were given up.
async fn call_and_give_up_at_random(limiter: Limiter, subject: Subject) -> (Subject, usize, usize) {
    let open = Policy::builder("open").rule(Rule::sliding_window(1_000_000, PER)).build().unwrap();
    let closed = Policy::builder("closed").rule(Rule::sliding_window(1, PER)).build().unwrap();
    assert!(limiter.check(&closed, &subject).await.unwrap().is_allowed());
    let (mut admitted, mut given_up) = (0, 0);
    for _ in 0..125 {
        let patience = Duration::from_micros(fastrand::u64(0..8_000));
        match timeout(patience, limiter.check(&open, &subject)).await {
            Ok(decision) => {
                assert!(decision.unwrap().is_allowed());
                admitted += 1;
            }
            Err(_) => given_up += 1,
        }
        if let Ok(decision) = timeout(patience, limiter.check(&closed, &subject)).await {
            assert!(!decision.unwrap().is_allowed());
        }
    }
    // The connection is served in order: once this is answered, all that was sent before is counted.
    assert!(!limiter.check(&closed, &subject).await.unwrap().is_allowed());
    (subject, admitted, given_up)
}
