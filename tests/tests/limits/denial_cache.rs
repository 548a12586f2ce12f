//! A denial is remembered in this process for a while, and no longer than it holds.

use std::time::Duration;

use tallygate::{Decision, Denial, Limiter, LimiterBuilder, Policy, RejectionKind, Rule, RuleStatus, Subject};
use tallygate_harness::load::{TASKS, admitted_at_once};
use tallygate_harness::punctuality::Punctuality;
use tallygate_harness::server::{Server, connected};
use tallygate_harness::until::until_found;
use tokio::time::{Instant, sleep};

const HOUR: Duration = Duration::from_secs(3_600);

fn policy(rules: impl IntoIterator<Item = Rule>) -> Policy {
    Policy::builder("remembered").rules(rules).build().unwrap()
}

fn subject() -> Subject {
    Subject::of("somebody")
}

fn builder() -> LimiterBuilder {
    // Nothing here is about the deadline.
    Limiter::builder().deadline(Duration::from_secs(30))
}

/// Remembers for longer than a busy machine takes between two calls.
async fn limiter(server: &Server) -> Limiter {
    connected(&builder().denial_cache(Duration::from_secs(10)), &server.url()).await
}

async fn denied(limiter: &Limiter, policy: &Policy) -> Denial {
    match limiter.check(policy, &subject()).await.unwrap() {
        Decision::Denied(denial) => denial,
        allowed @ Decision::Allowed(_) => panic!("{allowed:?}"),
    }
}

/// A policy of which a denial is cached, and how often the server was asked until then.
async fn exhausted(server: &Server) -> (Limiter, Policy, usize) {
    let (limiter, policy) = (limiter(server).await, policy([Rule::sliding_window(1, HOUR)]));
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
    denied(&limiter, &policy).await;
    (limiter, policy, asked(server))
}

fn asked(server: &Server) -> usize {
    server.calls("evalsha")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_denied_calls_reaches_redis_a_few_times_a_second() {
    let server = Server::start();
    let limiter = connected(&builder(), &server.url()).await;
    let before = asked(&server);
    let policy = policy([Rule::sliding_window(1, HOUR)]);
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
    let started = Instant::now();
    assert_eq!(admitted_at_once(&limiter, &policy, &subject(), 100_000 / TASKS).await, 0);
    let seconds = usize::try_from(started.elapsed().as_secs()).unwrap();
    // The first callers come at once and share some calls: few on any machine, as each call takes up to 128 of them. After
    // that, one caller asks when a second has passed.
    let asked = asked(&server) - before;
    assert!(asked <= 16 + 3 * seconds, "{asked} calls in {seconds}s");
}

#[tokio::test]
async fn a_cached_denial_is_that_of_redis_with_the_time_counted_down() {
    let server = Server::start();
    let limiter = limiter(&server).await;
    let policy = policy([Rule::duplicate(Duration::from_secs(60)), Rule::sliding_window(5, HOUR)]);
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
    let first = denied(&limiter, &policy).await;
    let calls = asked(&server);
    sleep(Duration::from_millis(20)).await;
    let second = denied(&limiter, &policy).await;
    assert_eq!(asked(&server), calls, "nobody was asked");
    assert_eq!((first.kind(), second.kind()), (RejectionKind::Duplicate, RejectionKind::Duplicate));
    assert_eq!(second.rule().unwrap().position(), first.rule().unwrap().position());
    let counted_down = first.retry_after().unwrap().checked_sub(second.retry_after().unwrap()).unwrap();
    assert!(counted_down >= Duration::from_millis(20), "{counted_down:?}");
}

#[tokio::test]
async fn a_call_in_shadow_that_would_wait_is_decided_by_a_cached_denial_as_well() {
    let server = Server::start();
    let (limiter, policy, calls) = exhausted(&server).await;
    for _ in 0..5 {
        assert!(limiter.check(&policy, &subject()).wait(HOUR).shadow().await.unwrap().is_allowed());
    }
    assert_eq!(asked(&server), calls, "nobody was asked");
}

#[tokio::test]
async fn rules_in_shadow_are_asked_together() {
    let server = Server::start();
    let limiter = limiter(&server).await;
    let in_shadow = (2..10).map(|count| Rule::sliding_window(count.into(), count * count * HOUR).shadow());
    let policy = policy([Rule::sliding_window(1, HOUR)].into_iter().chain(in_shadow));
    let calls = asked(&server);
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
    assert!(asked(&server) - calls <= 4, "{} calls for eight rules in shadow", asked(&server) - calls);
    let peeked = limiter.peek(&policy, &subject()).await.unwrap();
    let remaining: Vec<_> = peeked.shadow_report().iter().map(RuleStatus::remaining).collect();
    assert_eq!(remaining, [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[tokio::test]
async fn a_caller_that_comes_back_after_retry_after_is_admitted() {
    let server = Server::start();
    let limiter = limiter(&server).await;
    let policy = policy([Rule::sliding_window(2, Duration::from_millis(60))]);
    let mut slept = 0;
    while slept < 10 {
        if let Decision::Denied(_) = limiter.check(&policy, &subject()).await.unwrap() {
            // The second denial is a remembered one, as a rule.
            if let Decision::Denied(denial) = limiter.check(&policy, &subject()).await.unwrap() {
                sleep(denial.retry_after().unwrap()).await;
                assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
                slept += 1;
            }
        }
    }
}

#[tokio::test]
async fn a_call_that_costs_less_is_asked_for_and_its_admission_forgets_the_denial() {
    let server = Server::start();
    let limiter = limiter(&server).await;
    let policy = policy([Rule::sliding_window(5, HOUR)]);
    let allowed = async |cost| limiter.check(&policy, &subject()).cost(cost).await.unwrap().is_allowed();
    assert!(allowed(3).await);
    assert!(!allowed(3).await);
    let calls = asked(&server);
    assert!(!allowed(4).await);
    assert_eq!(asked(&server), calls, "what costs more is denied as well");
    assert!(allowed(1).await);
    assert!(!allowed(3).await);
    assert_eq!(asked(&server), calls + 2);
}

#[tokio::test]
async fn what_asks_for_a_report_is_always_asked() {
    let server = Server::start();
    let (limiter, policy, calls) = exhausted(&server).await;
    for _ in 0..5 {
        let decision = limiter.check(&policy, &subject()).report().await.unwrap();
        assert_eq!(decision.report()[0].remaining(), 0);
    }
    assert_eq!(asked(&server), calls + 5);
}

#[tokio::test]
async fn without_a_cache_every_call_asks_redis() {
    let server = Server::start();
    let limiter = connected(&builder().denial_cache(Duration::ZERO), &server.url()).await;
    let policy = policy([Rule::sliding_window(1, HOUR)]);
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
    let calls = asked(&server);
    for _ in 0..20 {
        denied(&limiter, &policy).await;
    }
    assert_eq!(asked(&server), calls + 20);
}

#[tokio::test]
async fn a_tally_that_another_process_lets_start_again_is_seen_when_the_time_is_over() {
    let server = Server::start();
    let limiter = connected(&builder().denial_cache(Duration::from_millis(100)), &server.url()).await;
    let policy = policy([Rule::sliding_window(1, HOUR)]);
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
    denied(&limiter, &policy).await;
    server.ask::<()>("FLUSHDB");
    until_found("it is admitted", async || limiter.check(&policy, &subject()).await.unwrap().is_allowed()).await;
}

#[test]
fn denials_are_cached_for_ten_seconds_at_most() {
    let longest = Duration::from_secs(10);
    assert!(Limiter::builder().denial_cache(longest).build_in_memory().is_ok());
    let refused = Limiter::builder().denial_cache(longest + Duration::from_nanos(1)).build_in_memory();
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("`denial_cache` is at most ten seconds"), "{text}");
}

#[tokio::test]
async fn a_settlement_lets_a_denial_be_forgotten() {
    let server = Server::start();
    let limiter = limiter(&server).await;
    let policy = policy([Rule::sliding_window(5, HOUR)]);
    let call = limiter.check(&policy, &subject()).cost(5).refundable().await.unwrap();
    for _ in 0..2 {
        denied(&limiter, &policy).await;
    }
    assert!(call.into_result().unwrap().settle(2).await.unwrap());
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_reset_and_a_refund_let_a_denial_be_forgotten() {
    let server = Server::start();
    let limiter = limiter(&server).await;
    let policy = policy([Rule::sliding_window(1, HOUR)]);
    let permit = limiter.check(&policy, &subject()).refundable().await.unwrap().into_result().unwrap();
    for _ in 0..2 {
        denied(&limiter, &policy).await;
    }
    assert!(permit.refund().await.unwrap());
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
    for _ in 0..2 {
        denied(&limiter, &policy).await;
    }
    limiter.check(&policy, &subject()).reset().await.unwrap();
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
}

#[tokio::test]
async fn an_override_reaches_a_subject_whose_denials_are_cached_within_two_seconds() {
    let server = Server::start();
    let worker = limiter(&server).await;
    let policy = policy([Rule::sliding_window(1, HOUR)]);
    assert!(worker.check(&policy, &subject()).await.unwrap().is_allowed());
    denied(&worker, &policy).await;
    let raised = limiter(&server).await;
    raised.override_policy("remembered").rules([Rule::sliding_window(1_000, HOUR)]).set().await.unwrap();
    let (machine, overridden) = (Punctuality::watch(), Instant::now());
    let is_allowed = async || worker.check(&policy, &subject()).await.unwrap().is_allowed();
    until_found("the raised limit is seen", is_allowed).await;
    let took = overridden.elapsed();
    assert!(took < Duration::from_secs(2) + machine.lateness(), "{took:?}");
}

#[tokio::test]
async fn cached_denials_look_for_overrides_and_ask_for_no_decision() {
    let server = Server::start();
    let limiter = limiter(&server).await;
    let policy = policy([Rule::sliding_window(1, HOUR)]);
    assert!(limiter.check(&policy, &subject()).await.unwrap().is_allowed());
    denied(&limiter, &policy).await;
    let (decisions, looks) = (asked(&server), server.calls("hget"));
    let machine = Punctuality::watch();
    let has_looked = async || {
        denied(&limiter, &policy).await;
        server.calls("hget") > looks
    };
    until_found("a refresh has begun", has_looked).await;
    // On a machine that stands still for two seconds, the overrides are so old that a call waits for them and asks then.
    let (more, late) = (asked(&server) - decisions, machine.lateness());
    assert!(more as u64 <= late.as_secs(), "{more} decisions on a machine that is {late:?} late");
}
