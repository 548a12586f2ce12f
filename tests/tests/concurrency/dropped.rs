//! Callers that are dropped while they are being decided: what they have taken is free again as soon as the answer arrives.
//!
//! The clock of these limiters stands still, so nothing is given back because time has passed.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tallygate::{Limiter, Policy, Rule, Subject};
use tallygate_harness::clocked::{Clocked, new_clock};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::length::cases;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::{Server, connected, patient};
use tallygate_harness::until::until_found;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const KEY: &str = "tallygate:export/leases:alice";
const LEASE: Duration = Duration::from_secs(600);
const LIMIT: u64 = 8;

fn policy() -> Policy {
    Policy::builder("export").rule(Rule::concurrency(LIMIT, LEASE)).build().unwrap()
}

fn alice() -> Subject {
    Subject::of("alice")
}

fn taken(server: &Server) -> u64 {
    server.ask(&format!("ZCARD {KEY}"))
}

async fn until_taken(server: &Server, leases: u64) {
    until_found("so many leases are taken", async || taken(server) == leases).await;
}

/// Polls a call that often at most, each time after it was woken, and drops it. Returns what it was decided.
async fn polled<T>(times: u32, call: impl Future<Output = T>) -> Option<T> {
    let (mut call, mut left) = (pin!(call), times);
    poll_fn(|context| {
        left -= 1;
        match call.as_mut().poll(context) {
            Poll::Ready(decided) => Poll::Ready(Some(decided)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// A server behind a proxy that holds replies back, and a limiter that has used the connection.
struct Held {
    clocked: Clocked,
    proxy: Proxy,
    limiter: Limiter,
}

impl Held {
    async fn start() -> Self {
        let clocked = Clocked::start();
        let proxy = Proxy::start(clocked.server().port()).await;
        let builder = patient().deadline(LEASE).clock(clocked.clock());
        let limiter = connected(&builder, &proxy.url()).await;
        drop(limiter.check(&policy(), &alice()).await.unwrap());
        until_taken(clocked.server(), 0).await;
        // Answers come in turn, so that no other is held back than those to come.
        assert!(limiter.peek(&policy(), &alice()).await.unwrap().is_allowed());
        proxy.hold_replies();
        Self { clocked, proxy, limiter }
    }

    fn server(&self) -> &Server {
        self.clocked.server()
    }

    /// Begins a call that waits if there is no room.
    fn call(&self) -> JoinHandle<()> {
        let limiter = self.limiter.clone();
        tokio::spawn(async move {
            let decided = limiter.check(&policy(), &alice()).wait(LEASE).await;
            drop(decided);
        })
    }
}

#[tokio::test]
async fn an_answer_that_arrives_after_its_caller_was_dropped_gives_the_slots_back() {
    for calls in [1, LIMIT] {
        let held = Held::start().await;
        // The first calls by itself, and the others are gathered.
        let calls: Vec<_> = (0..calls).map(|_| held.call()).collect();
        until_taken(held.server(), calls.len() as u64).await;
        for call in &calls {
            call.abort();
        }
        for call in calls {
            assert!(call.await.unwrap_err().is_cancelled());
        }
        held.proxy.deliver();
        until_taken(held.server(), 0).await;
    }
}

#[tokio::test]
async fn nothing_is_sent_for_callers_that_are_dropped_in_the_queue() {
    let held = Held::start().await;
    // One calls by itself, and as many turns are running as there are.
    let mut sent = Vec::new();
    for turn in 1..=3 {
        sent.push(held.call());
        until_taken(held.server(), turn).await;
    }
    let queued: Vec<_> = (0..5).map(|_| held.call()).collect();
    // Each has asked, and waits.
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    for call in queued {
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
    }
    let before = held.server().calls("zadd");
    held.proxy.deliver();
    for call in sent {
        call.await.unwrap();
    }
    until_taken(held.server(), 0).await;
    // Answers come in turn, so that whatever was queued has been decided.
    assert!(held.limiter.peek(&policy(), &alice()).await.unwrap().is_allowed());
    assert_eq!(held.server().calls("zadd"), before);
}

#[tokio::test]
async fn a_caller_that_is_dropped_at_any_await_leaves_no_slot_taken() {
    let clocked = Clocked::start();
    let limiter = clocked.limiter().await;
    for waits in [false, true] {
        for polls in 1.. {
            let (policy, alice) = (policy(), alice());
            let check = limiter.check(&policy, &alice);
            let check = if waits { check.wait(LEASE) } else { check };
            let decided = polled(polls, check.into_future()).await;
            let is_decided = decided.is_some();
            drop(decided);
            assert!(limiter.peek(&policy, &alice).await.unwrap().is_allowed());
            until_taken(clocked.server(), 0).await;
            if is_decided {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_permit_that_is_dropped_while_it_is_settled_or_refunded_leaves_no_slot_taken() {
    let clocked = Clocked::start();
    let limiter = clocked.limiter().await;
    let counted =
        Policy::builder("export").rule(Rule::concurrency(LIMIT, LEASE)).rule(Rule::sliding_window(500, LEASE));
    let (policy, alice) = (counted.build().unwrap(), alice());
    for settles in [false, true] {
        for polls in 1.. {
            let permit = limiter.check(&policy, &alice).cost(3).refundable().await.unwrap().into_result().unwrap();
            let recounted = async { if settles { permit.settle(1).await } else { permit.refund().await } };
            let is_done = polled(polls, recounted).await.is_some();
            until_taken(clocked.server(), 0).await;
            if is_done {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_is_dropped_in_a_cluster_leaves_no_slot_of_any_subject_taken() {
    let (cluster, clock) = (Cluster::shared(), new_clock());
    let limiter = connected(&patient().prefix("dropped").clock(&clock), &cluster.url()).await;
    let builder = Policy::builder("export").rule(Rule::concurrency(LIMIT, LEASE));
    let policy = builder.rule_on("network", Rule::concurrency(LIMIT, LEASE)).build().unwrap();
    let (alice, network) = (alice(), Subject::of("10.0.0.0/24"));
    let call = || limiter.check(&policy, &alice).subject("network", &network);
    let until_free = async || {
        let free = async || {
            let decision = call().peek().report().await.unwrap();
            [0, 1].map(|rule| decision.report()[rule].remaining()) == [LIMIT; 2]
        };
        until_found("all slots are free", free).await;
    };
    for polls in 1.. {
        let decided = polled(polls, call().into_future()).await;
        let is_decided = decided.is_some();
        drop(decided);
        until_free().await;
        if is_decided {
            break;
        }
    }
    // In every phase: while it is peeked at, and while its subjects are charged.
    for _ in 0..cases(50, 2_000) {
        let mut calls = Vec::new();
        for _ in 0..LIMIT {
            let (limiter, policy, alice, network) = (limiter.clone(), policy.clone(), alice.clone(), network.clone());
            let patience = Duration::from_micros(fastrand::u64(0..3_000));
            calls.push(tokio::spawn(async move {
                let call = limiter.check(&policy, &alice).subject("network", &network);
                drop(timeout(patience, call.into_future()).await);
            }));
        }
        for call in calls {
            call.await.unwrap();
        }
    }
    until_free().await;
}
