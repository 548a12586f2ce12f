//! A limiter that several runtimes share, each of which ends when it likes.

use std::future::pending;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tallygate::{Limiter, OnOutage, Policy, Rule, Subject};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::length::cases;
use tallygate_harness::sentinels::Sentinels;
use tallygate_harness::server::Server;
use tallygate_harness::until::wait_until;
use tokio::runtime::{Builder, Runtime};

const HOUR: Duration = Duration::from_secs(3_600);

/// How many threads have one runtime after the other.
const THREADS: usize = 8;

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn limiter(url: &str) -> Limiter {
    Limiter::builder().deadline(Duration::from_secs(30)).connect_lazy(url).unwrap()
}

fn policy() -> Policy {
    let policy = Policy::builder("p").rule(Rule::sliding_window(1_000_000, HOUR));
    policy.rule_on("b", Rule::fixed_window(1_000_000, HOUR)).on_outage(OnOutage::Deny).build().unwrap()
}

async fn call(limiter: &Limiter, policy: &Policy, number: usize) -> Result<(), String> {
    let (main, other) = (Subject::of(number), Subject::of("b").and(number));
    let decided = limiter.check(policy, &main).subject("b", &other).await;
    decided.map(|decision| assert!(decision.is_allowed())).map_err(|error| error.to_string())
}

/// Returns how many calls were made, and why some of them were not decided.
fn errors_of(limiter: &Limiter, runtime: impl Fn() -> Runtime + Sync) -> (usize, Vec<String>) {
    let (policy, called, start) = (&policy(), &AtomicUsize::new(0), &Barrier::new(THREADS));
    let errors = |thread: usize| {
        let mut errors = Vec::new();
        start.wait();
        for _ in 0..cases(10, 100) {
            let runtime = runtime();
            // They end in the midst of the calls of others.
            runtime.block_on(async {
                for number in 0..10 + thread {
                    called.fetch_add(1, Ordering::Relaxed);
                    errors.extend(call(limiter, policy, number).await.err());
                }
            });
        }
        errors
    };
    let errors = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || errors(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    (called.load(Ordering::Relaxed), errors)
}

#[test]
fn no_call_is_lost_by_the_end_of_another_runtime() {
    let (server, cluster, sentinels) = (Server::start(), Cluster::start(), Sentinels::start());
    for url in [server.url(), cluster.url(), sentinels.url()] {
        for runtime in [current_thread, multi_thread] {
            let (called, errors) = errors_of(&limiter(&url), runtime);
            assert!(called > 1_000 && errors.is_empty(), "{} of {called}: {:?}", errors.len(), errors.first());
        }
    }
}

#[test]
fn a_runtime_that_stands_still_holds_up_no_call_of_another() {
    let (server, cluster) = (Server::start(), Cluster::start());
    for url in [server.url(), cluster.url()] {
        let (limiter, policy) = (limiter(&url), policy());
        let still = current_thread();
        still.block_on(call(&limiter, &policy, 0)).unwrap();
        for runtime in [current_thread(), multi_thread()] {
            runtime.block_on(call(&limiter, &policy, 0)).unwrap();
        }
        still.block_on(call(&limiter, &policy, 0)).unwrap();
    }
}

#[test]
fn what_a_runtime_gives_back_as_it_ends_is_given_back() {
    let server = Server::start();
    let (limiter, subject) = (limiter(&server.url()), Subject::of("s"));
    let policy = Policy::builder("metered").rule(Rule::sliding_window(100, HOUR)).build().unwrap();
    let check = || limiter.check(&policy, &subject);
    for (runtime, left) in [(current_thread(), 93), (multi_thread(), 86)] {
        let (limiter, policy, subject) = (limiter.clone(), policy.clone(), subject.clone());
        runtime.block_on(async move {
            let permit = limiter.check(&policy, &subject).cost(50).refundable().await.unwrap().into_result();
            let meter = permit.unwrap().meter("calls").unwrap();
            meter.add(7);
            tokio::spawn(async move {
                let _meter = meter;
                pending::<()>().await;
            });
        });
        drop(runtime);
        let remaining = || check().peek().report().blocking_decide().unwrap().report()[0].remaining();
        wait_until("it is settled", || remaining() == left);
    }
}
