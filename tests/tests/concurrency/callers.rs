//! Many callers at once admit exactly as many as the rules say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_harness::load::{TASKS, admitted_at_once};
use tallygate_harness::server::{Server, ask, key_of};
use tallygate_harness::stored;
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

/// How often clients have asked a server for a script by its name.
fn round_trips(server: &Server) -> usize {
    server.calls("evalsha")
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_at_once_share_round_trips() {
    let server = Server::start();
    let calls = 100;
    admitted_at_once(&server.limiter().await, &policy(10), &Subject::of("s"), calls).await;
    let (decisions, trips) = (TASKS * calls, round_trips(&server));
    assert!(trips < decisions / 4, "{trips} round trips for {decisions} decisions");
}

#[tokio::test]
async fn a_single_call_waits_for_no_other() {
    let server = Server::start();
    let limiter = server.limiter().await;
    // A limiter that connects plays a few calls.
    let before = round_trips(&server);
    for calls in 1..=20 {
        let _ = limiter.check(&policy(10), &Subject::of("s")).await.unwrap();
        assert_eq!(round_trips(&server) - before, calls);
    }
}

fn one_rule(name: &'static str) -> Policy {
    Policy::builder(name).rule(Rule::sliding_window(1, PER)).build().unwrap()
}

/// Queues calls behind as many as may be running, gives some of them up, and returns the keys that were counted.
async fn counted_of(server: &Server, limiter: &Limiter, waits: impl Fn(usize) -> bool) -> Vec<String> {
    let policy = one_rule("queue");
    server.pause();
    let subjects: Vec<_> = (0..10).map(Subject::of).collect();
    let mut calls: Vec<_> =
        subjects.iter().map(|subject| Box::pin(limiter.check(&policy, subject).into_future())).collect();
    for call in &mut calls {
        // The first three are sent, the others wait for them.
        assert!(timeout(Duration::ZERO, call).await.is_err());
    }
    let mut index = 0..;
    calls.retain(|_| waits(index.next().unwrap()));
    server.resume();
    for decision in join_all(calls).await {
        assert!(decision.unwrap().is_allowed());
    }
    let mut keys: Vec<String> = server.ask("KEYS tallygate:queue/*");
    keys.sort();
    keys.iter().map(|key| key.rsplit(':').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn nothing_is_sent_for_callers_that_gave_up_while_they_waited() {
    let server = Server::start();
    let limiter = server.limiter().await;
    // The server knows the script, and there is a connection.
    assert!(limiter.check(&one_rule("known"), &Subject::of("s")).await.unwrap().is_allowed());
    assert_eq!(counted_of(&server, &limiter, |call| call < 3 || call % 3 == 0).await, ["0", "1", "2", "3", "6", "9"]);
    server.ask::<()>("FLUSHALL");
    let before = round_trips(&server);
    assert_eq!(counted_of(&server, &limiter, |call| call < 3).await, ["0", "1", "2"]);
    assert!(limiter.check(&one_rule("known"), &Subject::of("s")).await.unwrap().is_allowed());
    assert_eq!(round_trips(&server) - before, 4, "where nobody waits any more, nothing is sent");
}

#[tokio::test]
async fn callers_that_wait_for_one_that_gives_up_are_decided_all_the_same() {
    let server = Server::start();
    let limiter = server.limiter().await;
    assert!(limiter.check(&one_rule("known"), &Subject::of("s")).await.unwrap().is_allowed());
    // Its request has been sent, so it counts.
    let counted = counted_of(&server, &limiter, |call| call != 0).await;
    assert_eq!(counted, (0..10).map(|call| call.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn calls_whose_futures_are_no_longer_polled_delay_no_other() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let (policy, subject) = (policy(10), Subject::of("s"));
    let mut held: Vec<_> = (0..4).map(|_| Box::pin(limiter.check(&policy, &subject).into_future())).collect();
    for call in &mut held {
        // Asked for, and not answered yet.
        assert!(call.now_or_never().is_none());
    }
    for _ in 0..3 {
        assert!(limiter.check(&policy, &subject).await.unwrap().is_allowed());
    }
    for decision in join_all(held).await {
        assert!(decision.unwrap().is_allowed());
    }
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
        let key = key_of(&mut connection, "open", &subject.to_string());
        let log: Vec<u8> = ask(&mut connection, &format!("GET {key}"));
        let counted: usize = stored::calls(&log).iter().map(|(_, weight)| *weight as usize).sum();
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
