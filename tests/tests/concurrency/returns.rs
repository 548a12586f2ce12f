//! What has ended is given back before the same process asks again for that subject, however it asks.

use std::thread;
use std::time::Duration;

use tallygate::{Limiter, Permit, Policy, Rule, Subject};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::sentinels::Sentinels;
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::wait_until;
use tokio::runtime::{Builder, Runtime};

const CALLS: usize = 1_000;
const KEY: &str = "tallygate:export/leases:alice";

fn one_at_a_time() -> Policy {
    Policy::builder("export").rule(Rule::concurrency(1, Duration::from_secs(600))).build().unwrap()
}

fn alice() -> Subject {
    Subject::of("alice")
}

async fn permit(limiter: &Limiter, policy: &Policy) -> Permit {
    limiter.check(policy, &alice()).await.expect("redis answers").into_result().expect("the call before has ended")
}

fn blocking_permit(limiter: &Limiter, policy: &Policy) -> Permit {
    let decided = limiter.check(policy, &alice()).blocking_decide().expect("redis answers");
    decided.into_result().expect("the call before has ended")
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn call_in_turn(limiter: &Limiter, policy: &Policy, calls: usize) {
    for _ in 0..calls {
        drop(permit(limiter, policy).await);
        assert!(limiter.check(policy, &alice()).peek().await.unwrap().is_allowed());
    }
}

#[tokio::test]
async fn calls_in_turn_are_never_denied_on_one_server() {
    let server = Server::start();
    let limiter = connected(&patient(), &server.url()).await;
    call_in_turn(&limiter, &one_at_a_time(), CALLS).await;
    // Also on a server that has forgotten all scripts.
    server.ask::<()>("SCRIPT FLUSH");
    call_in_turn(&limiter, &one_at_a_time(), 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_in_turn_are_never_denied_on_several_threads() {
    let server = Server::start();
    let limiter = connected(&patient(), &server.url()).await;
    let policy = one_at_a_time();
    for _ in 0..CALLS {
        let (limiter, policy) = (limiter.clone(), policy.clone());
        let call = tokio::spawn(async move { drop(permit(&limiter, &policy).await) });
        call.await.unwrap();
    }
}

#[tokio::test]
async fn calls_in_turn_are_never_denied_by_a_primary_of_sentinels() {
    let sentinels = Sentinels::shared();
    let limiter = connected(&patient().prefix("returns"), &sentinels.url()).await;
    call_in_turn(&limiter, &one_at_a_time(), 100).await;
}

#[tokio::test]
async fn calls_in_turn_are_never_denied_although_their_subjects_are_in_several_slots() {
    let cluster = Cluster::shared();
    let limiter = connected(&patient().prefix("returns"), &cluster.url()).await;
    call_in_turn(&limiter, &one_at_a_time(), CALLS).await;
    let lease = Duration::from_secs(600);
    let policy = Policy::builder("both")
        .rule(Rule::concurrency(1, lease))
        .rule_on("network", Rule::concurrency(1, lease))
        .rule_on("day", Rule::fixed_window(CALLS as u64, lease))
        .build()
        .unwrap();
    let (network, day) = (Subject::of("10.0.0.0/24"), Subject::of("today"));
    for _ in 0..CALLS {
        let alice = alice();
        let check = limiter.check(&policy, &alice).subject("network", &network).subject("day", &day);
        drop(check.await.unwrap().into_result().expect("the call before has ended"));
    }
}

#[test]
fn calls_of_plain_functions_in_turn_are_never_denied() {
    let server = Server::start();
    let limiter = patient().connect_lazy(server.url()).unwrap();
    let policy = one_at_a_time();
    for _ in 0..CALLS {
        drop(blocking_permit(&limiter, &policy));
    }
}

#[test]
fn plain_and_async_functions_in_turn_are_never_denied_also_where_they_block_the_only_thread_of_a_runtime() {
    let server = Server::start();
    let limiter = patient().connect_lazy(server.url()).unwrap();
    let policy = one_at_a_time();
    runtime().block_on(async {
        for _ in 0..100 {
            drop(permit(&limiter, &policy).await);
            drop(blocking_permit(&limiter, &policy));
            drop(blocking_permit(&limiter, &policy));
        }
    });
}

#[test]
fn calls_of_two_runtimes_in_turn_are_never_denied_wherever_their_permits_are_dropped() {
    let server = Server::start();
    let limiter = patient().connect_lazy(server.url()).unwrap();
    // The first has the connection, and drives it while the second is used.
    let on_threads = || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (policy, runtimes) = (one_at_a_time(), [on_threads(), on_threads()]);
    for call in 0..100 {
        let permit = runtimes[call % 2].block_on(permit(&limiter, &policy));
        match call % 4 {
            // On the other runtime, on none, and on another thread.
            0 | 1 => runtimes[(call + 1) % 2].block_on(async { drop(permit) }),
            2 => drop(permit),
            _ => thread::spawn(|| drop(permit)).join().unwrap(),
        }
    }
}

#[test]
fn a_permit_that_outlives_its_runtime_is_given_back_when_it_is_dropped() {
    let server = Server::start();
    let limiter = patient().connect_lazy(server.url()).unwrap();
    let policy = one_at_a_time();
    let first = runtime();
    let held = first.block_on(permit(&limiter, &policy));
    drop(first);
    drop(held);
    wait_until("the lease was given back", || server.ask::<u64>(&format!("ZCARD {KEY}")) == 0);
    drop(runtime().block_on(permit(&limiter, &policy)));
    // That runtime has ended before its task could give the lease back.
    wait_until("the lease was given back", || server.ask::<u64>(&format!("ZCARD {KEY}")) == 0);
}

#[test]
fn calls_of_two_limiters_of_one_process_in_turn_are_never_denied() {
    let (server, other) = (Server::start(), Server::start());
    let connect = |server: &Server| patient().connect_lazy(server.url()).unwrap();
    let (limiters, elsewhere) = ([connect(&server), connect(&server)], connect(&other));
    let policy = one_at_a_time();
    runtime().block_on(async {
        for call in 0..CALLS {
            let held = permit(&limiters[call % 2], &policy).await;
            // A server of its own has leases of its own, also under the same keys.
            drop(permit(&elsewhere, &policy).await);
            drop(held);
        }
    });
}

#[tokio::test]
async fn a_lease_that_was_lost_on_its_way_back_is_carried_by_the_next_call() {
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let limiter = connected(&patient(), &proxy.url()).await;
    let policy = one_at_a_time();
    for _ in 0..20 {
        let held = permit(&limiter, &policy).await;
        // What is sent before the connection is lost is lost with it.
        proxy.cut();
        drop(held);
        let decided = loop {
            if let Ok(decided) = limiter.check(&policy, &alice()).await {
                break decided;
            }
        };
        assert!(decided.is_allowed(), "{decided:?}");
    }
}
