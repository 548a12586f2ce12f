//! The leases of concurrent calls in Redis: renewed, given back in each case, and gone with the process.

use std::mem;
use std::time::Duration;

use tallygate::{Limiter, OnOutage, Permit, Policy, RejectionKind, Rule, Subject};
use tallygate_harness::clocked::Clocked;
use tallygate_harness::proxy::Proxy;
use tallygate_harness::server::{Server, away, connected, patient};
use tallygate_harness::until::until_found;

const KEY: &str = "tallygate:export/leases:alice";
const LEASE: Duration = Duration::from_secs(600);

fn at_most(limit: u64) -> Policy {
    Policy::builder("export").rule(Rule::concurrency(limit, LEASE)).build().unwrap()
}

fn alice() -> Subject {
    Subject::of("alice")
}

async fn permit(limiter: &Limiter, policy: &Policy) -> Permit {
    limiter.check(policy, &alice()).await.expect("redis answers").into_result().expect("there is room")
}

async fn is_allowed(limiter: &Limiter, policy: &Policy) -> bool {
    limiter.check(policy, &alice()).peek().await.expect("redis answers").is_allowed()
}

/// The ends of all leases, in microseconds.
fn ends_us(server: &Server) -> Vec<u64> {
    let pairs: Vec<(redis::Value, String)> = server.ask(&format!("ZRANGE {KEY} 0 -1 WITHSCORES"));
    pairs.into_iter().map(|(_, ends_us)| ends_us.parse().unwrap()).collect()
}

/// Awaits that no lease is left.
async fn until_given_back(server: &Server) {
    until_found("all leases were given back", async || server.ask::<u64>(&format!("ZCARD {KEY}")) == 0).await;
}

#[tokio::test]
async fn a_call_that_takes_longer_than_its_lease_stays_running() {
    let clocked = Clocked::start();
    let (limiter, policy) = (clocked.limiter().await, at_most(1));
    let held = permit(&limiter, &policy).await;
    assert_eq!(ends_us(clocked.server()), [clocked.now_us() + 600_000_000]);
    for _ in 0..5 {
        clocked.advance(LEASE / 2);
        let expected = [clocked.now_us() + 600_000_000];
        until_found("the lease was renewed", async || ends_us(clocked.server()) == expected).await;
        assert!(!is_allowed(&limiter, &policy).await);
    }
    drop(held);
    until_given_back(clocked.server()).await;
    assert!(is_allowed(&limiter, &policy).await);
}

#[tokio::test]
async fn a_lease_is_renewed_again_although_no_answer_comes_for_longer_than_it_lasts() {
    let clocked = Clocked::start();
    let proxy = Proxy::start(clocked.server().port()).await;
    let builder = patient().deadline(Duration::from_secs(3_600)).clock(clocked.clock());
    let limiter = connected(&builder, &proxy.url()).await;
    let policy = at_most(1);
    let _held = permit(&limiter, &policy).await;
    let until_renewed = async || {
        let expected = [clocked.now_us() + 600_000_000];
        until_found("the lease was renewed", async || ends_us(clocked.server()) == expected).await;
    };
    clocked.advance(LEASE / 2);
    until_renewed().await;
    // Answers come in turn: from now on the server knows the script, and all before is answered.
    assert!(!is_allowed(&limiter, &policy).await);
    proxy.lose_replies();
    clocked.advance(LEASE / 2);
    for _ in 0..3 {
        until_renewed().await;
        clocked.advance(LEASE / 8);
    }
}

#[test]
fn the_leases_of_a_process_that_dies_end_by_themselves() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (clocked, policy) = (Clocked::start(), at_most(2));
    let dying = runtime();
    let permits = dying.block_on(async {
        let proxy = Proxy::start(clocked.server().port()).await;
        let limiter = connected(&patient().clock(clocked.clock()), &proxy.url()).await;
        [permit(&limiter, &policy).await, permit(&limiter, &policy).await]
    });
    // All of the process is gone that could renew leases or give them back: its tasks, whoever holds permits, and with the proxy
    // the way of its thread to the server.
    drop(dying);
    mem::forget(permits);
    runtime().block_on(async {
        let limiter = clocked.limiter().await;
        clocked.advance(LEASE.checked_sub(Duration::from_micros(1)).unwrap());
        let decision = limiter.check(&policy, &alice()).await.unwrap();
        let denial = decision.into_result().map(drop).unwrap_err();
        assert_eq!((denial.kind(), denial.retry_after()), (RejectionKind::Concurrency, Some(Duration::from_micros(1))));
        clocked.advance(Duration::from_micros(1));
        let _permit = permit(&limiter, &policy).await;
        // Those that have ended are forgotten.
        assert_eq!(ends_us(clocked.server()).len(), 1);
    });
}

#[tokio::test]
async fn a_lease_that_cannot_be_given_back_is_given_back_later() {
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let limiter = connected(&Limiter::builder().deadline(Duration::from_secs(2)), &proxy.url()).await;
    let policy = at_most(3);
    let permits = [permit(&limiter, &policy).await, permit(&limiter, &policy).await];
    proxy.swallow();
    drop(permits);
    until_given_back(&server).await;
}

#[tokio::test]
async fn a_lease_whose_answer_is_lost_is_given_back() {
    let server = Server::start();
    let proxy = Proxy::start(server.port()).await;
    let builder = Limiter::builder().deadline(Duration::from_secs(2)).registry(false);
    let limiter = connected(&builder, &proxy.url()).await;
    let policy = at_most(1);
    for lose in [Proxy::lose_replies, Proxy::cut_replies] {
        drop(permit(&limiter, &policy).await);
        until_given_back(&server).await;
        // Answers come in turn, so that only the next one is lost.
        assert!(is_allowed(&limiter, &policy).await);
        lose(&proxy);
        assert!(limiter.check(&policy, &alice()).await.is_err());
        // It was taken: the script was executed, and only its reply is missing.
        assert_eq!(server.ask::<u64>(&format!("ZCARD {KEY}")), 1);
        until_given_back(&server).await;
    }
}

#[tokio::test]
async fn a_lease_of_a_caller_that_gives_up_is_given_back() {
    let server = Server::start();
    let (limiter, policy) = (connected(&patient().deadline(Duration::from_secs(5)), &server.url()).await, at_most(1));
    for _ in 0..20 {
        let calls = (0..8).map(|_| {
            let (limiter, policy) = (limiter.clone(), policy.clone());
            tokio::spawn(async move { limiter.check(&policy, &alice()).await.map(drop) })
        });
        let calls: Vec<_> = calls.collect();
        tokio::task::yield_now().await;
        calls.iter().for_each(tokio::task::JoinHandle::abort);
    }
    // What was sent before is executed before, so that no call is admitted any more once this one has its answer.
    is_allowed(&limiter, &policy).await;
    until_given_back(&server).await;
    assert!(is_allowed(&limiter, &policy).await);
}

#[tokio::test]
async fn calls_that_are_made_at_once_are_decided_in_their_order() {
    let server = Server::start();
    let (limiter, policy, alice) = (server.limiter().await, at_most(1), alice());
    for _ in 0..20 {
        let calls = [limiter.check(&policy, &alice), limiter.peek(&policy, &alice), limiter.check(&policy, &alice)];
        let decided = futures_util::future::join_all(calls.map(IntoFuture::into_future)).await;
        let are_allowed: Vec<_> = decided.iter().map(|decided| decided.as_ref().unwrap().is_allowed()).collect();
        assert_eq!(are_allowed, [true, false, false]);
        drop(decided);
        until_given_back(&server).await;
    }
}

#[tokio::test]
async fn a_call_waits_for_as_many_leases_to_end_as_the_limit_was_lowered_by() {
    let clocked = Clocked::start();
    let limiter = clocked.limiter().await;
    // One has ended, and is not forgotten yet.
    for (name, ends_us) in [("a", clocked.now_us()), ("b", clocked.now_us() + 1), ("c", clocked.now_us() + 20)] {
        clocked.server().ask::<u64>(&format!("ZADD {KEY} {ends_us} {name}"));
    }
    for (limit, wait_us) in [(2, 1), (1, 20)] {
        let denial = limiter.check(&at_most(limit), &alice()).await.unwrap().into_result().map(drop).unwrap_err();
        assert_eq!(denial.retry_after(), Some(Duration::from_micros(wait_us)), "{limit}");
    }
}

#[tokio::test]
async fn leases_that_have_ended_are_forgotten_a_few_at_a_time() {
    let clocked = Clocked::start();
    let (limiter, policy) = (clocked.limiter().await, at_most(10_000));
    let ended = clocked.now_us() - 1;
    for chunk in 0..10 {
        let members: Vec<_> = (0..100).map(|lease| format!("{ended} old-{chunk}-{lease}")).collect();
        clocked.server().ask::<u64>(&format!("ZADD {KEY} {}", members.join(" ")));
    }
    let first = permit(&limiter, &policy).await;
    assert_eq!(first.report().len(), 0);
    assert_eq!(ends_us(clocked.server()).len(), 1_000 - 128 + 1);
    for _ in 0..8 {
        let _ = permit(&limiter, &policy).await;
    }
    let is_left = async || ends_us(clocked.server()).len() == 1;
    until_found("the first lease alone is left", is_left).await;
}

#[tokio::test]
async fn the_leases_of_a_subject_live_as_long_as_the_longest_of_them() {
    let server = Server::start();
    let (limiter, long) = (server.limiter().await, at_most(9));
    let short = Policy::builder("export").rule(Rule::concurrency(9, Duration::from_secs(2))).build().unwrap();
    let _long = permit(&limiter, &long).await;
    let ttl_ms: u64 = server.ask(&format!("PTTL {KEY}"));
    assert!((1_100_000..=1_200_000).contains(&ttl_ms), "{ttl_ms}");
    // Another version of the policy has shorter leases.
    let _short = permit(&limiter, &short).await;
    assert!(server.ask::<u64>(&format!("PTTL {KEY}")) > 1_100_000);
}

#[tokio::test]
async fn a_tally_that_is_no_set_of_leases_is_an_error_and_admits_nothing() {
    let server = Server::start();
    let (limiter, policy) = (server.limiter().await, at_most(1));
    server.ask::<()>(&format!("SET {KEY} text"));
    let error = limiter.check(&policy, &alice()).await.unwrap_err().to_string();
    assert!(error.contains("WRONGTYPE") || error.contains("wrong kind"), "{error}");
    // Others that are asked about in the same call are answered.
    let bob = Subject::of("bob");
    let alice = alice();
    let calls = (0..20).map(|call| limiter.check(&policy, if call % 2 == 0 { &alice } else { &bob }).peek());
    let answers = futures_util::future::join_all(calls.map(IntoFuture::into_future)).await;
    for (call, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.is_ok(), call % 2 == 1, "{answer:?}");
    }
}

#[tokio::test]
async fn calls_that_are_rejected_in_an_outage_leave_no_tasks_behind() {
    let limiter = away(|builder| builder.on_outage(OnOutage::Deny));
    let policy = at_most(1);
    for _ in 0..5_000 {
        assert!(limiter.check(&policy, &alice()).await.is_err());
    }
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert!(tasks < 100, "{tasks}");
}

#[tokio::test]
async fn after_the_clock_was_set_back_the_leases_of_dead_processes_do_not_count() {
    let clocked = Clocked::start();
    let (limiter, policy) = (clocked.limiter().await, at_most(1));
    let later = clocked.now_us() + 7_200_000_000;
    clocked.server().ask::<u64>(&format!("ZADD {KEY} {later} of-a-dead-process"));
    let permit = permit(&limiter, &policy).await;
    // It would count again once its end is as near as that of a lease.
    assert_eq!(clocked.server().ask::<u64>(&format!("ZCARD {KEY}")), 1);
    assert!(!is_allowed(&limiter, &policy).await);
    drop(permit);
    until_found("the lease was given back", async || is_allowed(&limiter, &policy).await).await;
}

#[tokio::test]
async fn a_lowered_limit_tells_a_bound_of_the_wait_although_many_leases_have_to_end() {
    let clocked = Clocked::start();
    let (limiter, policy) = (clocked.limiter().await, at_most(1));
    for lease in 0..300 {
        let ends = clocked.now_us() + 1_000_000 * (lease + 1);
        clocked.server().ask::<u64>(&format!("ZADD {KEY} {ends} lease-{lease}"));
    }
    let denial = limiter.check(&policy, &alice()).await.unwrap().into_result().map(drop).unwrap_err();
    assert_eq!(denial.retry_after(), Some(Duration::from_secs(129)));
}
