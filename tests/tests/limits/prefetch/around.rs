//! What happens around calls that are taken ahead: outages, lost state, runtimes that end, callers that go, shadow.

use std::sync::atomic::Ordering;

use tallygate::{DecidedBy, Limiter, OnOutage, Policy, Rejection, Rule, rate_limit};
use tallygate_harness::log::Log;
use tallygate_harness::server::{Server, connected, free_port, patient};
use tallygate_harness::until::until_found;
use tokio::runtime;

use super::busy::{AHEAD, Busy, COUNT, PER, SECOND, policy, tenant};

/// Ends what the process can reach, for good.
fn go_away(busy: &Busy) {
    busy.proxy.point_to(free_port());
    busy.proxy.cut();
}

async fn in_an_outage(on_outage: OnOutage) -> Busy {
    let rule = Rule::sliding_window(COUNT, PER);
    let policy = Policy::builder("tenant").rule(rule).prefetch(AHEAD).on_outage(on_outage).build().unwrap();
    let busy = Busy::with(policy).await;
    go_away(&busy);
    busy
}

#[tokio::test]
async fn in_an_outage_that_denies_no_call_is_admitted_once_it_is_known_or_the_part_has_ended() {
    let busy = in_an_outage(OnOutage::Deny).await;
    until_found("calls are rejected", async || busy.check(&tenant()).await.is_err()).await;
    busy.clock.advance(AHEAD);
    for _ in 0..20 {
        assert!(busy.check(&tenant()).await.is_err());
    }
}

#[tokio::test]
async fn in_an_outage_that_is_decided_locally_this_process_counts_by_itself() {
    let busy = in_an_outage(OnOutage::Local).await;
    let by = async || busy.check(&tenant()).await.unwrap().decided_by();
    until_found("the standby decides", async || by().await == DecidedBy::Standby).await;
    busy.clock.advance(2 * PER);
    let mut admitted = 0;
    while busy.check(&tenant()).await.unwrap().is_allowed() {
        admitted += 1;
    }
    assert_eq!(admitted, COUNT, "the rules of the standby are those of the policy, without the wider window");
}

#[tokio::test]
async fn in_an_outage_that_allows_every_call_is_admitted_and_counts_nowhere() {
    let busy = in_an_outage(OnOutage::Allow).await;
    let by = async || busy.check(&tenant()).await.unwrap().decided_by();
    until_found("nobody decides", async || by().await == DecidedBy::Nobody).await;
    busy.clock.advance(2 * PER);
    assert_eq!(busy.remaining().await, COUNT);
}

#[tokio::test]
async fn after_an_outage_calls_are_taken_ahead_again() {
    let busy = in_an_outage(OnOutage::Allow).await;
    let by = async || busy.check(&tenant()).await.unwrap().decided_by();
    until_found("nobody decides", async || by().await == DecidedBy::Nobody).await;
    busy.proxy.point_to(busy.server.port());
    until_found("a call is decided ahead", async || {
        busy.clock.advance(AHEAD);
        let mut is_ahead = false;
        for _ in 0..40 {
            is_ahead |= busy.is_decided_ahead().await;
        }
        is_ahead
    })
    .await;
}

#[tokio::test]
async fn after_lost_state_what_was_taken_comes_on_top_of_one_more_count() {
    let busy = Busy::start().await;
    let own = busy.limiter.peek(&busy.policy, &tenant()).await.unwrap().report()[0].remaining();
    let taken = own - busy.remaining().await;
    busy.server.ask::<()>("FLUSHALL");
    assert!(busy.other.check(&busy.policy, &tenant()).cost(COUNT).await.unwrap().is_allowed());
    let before = busy.used.load(Ordering::Relaxed);
    for _ in 0..2 * taken {
        busy.is_decided_ahead().await;
    }
    assert_eq!(busy.used.load(Ordering::Relaxed) - before, taken, "its part, and no more");
    busy.clock.advance(AHEAD);
    assert!(!busy.check(&tenant()).await.unwrap().is_allowed());
}

#[test]
fn a_runtime_that_ends_keeps_no_other_from_taking_calls_ahead() {
    let server = Server::start();
    let limiter = patient().connect_lazy(server.url()).unwrap();
    let policy = policy(Rule::sliding_window(COUNT, SECOND));
    let scripts = || server.calls("evalsha");
    let is_ahead = async || {
        let asked = scripts();
        for _ in 0..200 {
            assert!(limiter.check(&policy, &tenant()).await.unwrap().is_allowed());
        }
        scripts() - asked < 100
    };
    for _ in 0..3 {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { until_found("calls are taken ahead", is_ahead).await });
    }
}

#[tokio::test]
async fn a_call_that_nobody_awaits_takes_nothing() {
    let busy = Busy::start().await;
    let subject = tenant();
    let own = async || busy.limiter.peek(&busy.policy, &subject).await.unwrap().report()[0].remaining();
    let before = own().await;
    drop((0..50).map(|_| busy.check(&subject)).collect::<Vec<_>>());
    assert_eq!(own().await, before);
}

#[rate_limit(name = "ahead.shadow", rule(count = 300, per = "60s"), prefetch = "100ms", limiter = limiter, check_fn = shadowed_limit, shadow)]
async fn shadowed(limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test]
async fn in_shadow_every_call_runs_and_no_more_are_counted_than_the_limit() {
    let server = Server::start();
    let limiter = connected(&patient(), &server.url()).await;
    for _ in 0..600 {
        shadowed(&limiter).await.unwrap();
    }
    until_found("the limit is used", async || {
        shadowed(&limiter).await.unwrap();
        !shadowed_limit(&limiter).peek().await.unwrap().is_allowed()
    })
    .await;
}

#[tokio::test]
async fn a_rule_in_shadow_counts_calls_that_are_taken_ahead_one_by_one_and_is_refunded_with_them() {
    let rules = [Rule::sliding_window(COUNT, PER), Rule::fixed_window(COUNT / 2, PER).shadow()];
    let busy = Busy::with(Policy::builder("tenant").rules(rules).prefetch(AHEAD).build().unwrap()).await;
    let subject = tenant();
    let left = async || {
        let peeked = busy.limiter.peek(&busy.policy, &subject).await.unwrap();
        [peeked.report(), peeked.shadow_report()].map(|report| report[0].remaining())
    };
    let used = busy.used.load(Ordering::Relaxed);
    assert_eq!(left().await[1], COUNT / 2 - used);
    let call = async |cost: u64| {
        until_found("a call is decided ahead", async || busy.is_decided_ahead().await).await;
        let before = left().await;
        let permit = busy.check(&subject).cost(cost).refundable().await.unwrap().into_result().unwrap();
        assert_eq!(busy.counted("tallygate_prefetch_decisions_total", "tenant"), 1, "it is decided ahead");
        assert_eq!(left().await, before.map(|left| left - cost));
        (permit, before)
    };
    let (refunded, before) = call(1).await;
    assert!(refunded.refund().await.unwrap());
    assert_eq!(left().await, before);
    let (settled, before) = call(3).await;
    assert!(settled.settle(1).await.unwrap());
    assert_eq!(left().await, before.map(|left| left - 1));
}

#[tokio::test]
async fn a_rule_in_shadow_reports_calls_that_were_admitted_from_what_was_taken_ahead() {
    let rules = [Rule::sliding_window(COUNT, PER), Rule::fixed_window(1, PER).shadow()];
    let busy = Busy::with(Policy::builder("tenant").rules(rules).prefetch(AHEAD).build().unwrap()).await;
    let (log, _listening) = Log::listen();
    until_found("a call is decided ahead", async || busy.is_decided_ahead().await).await;
    let is_tried = |line: &String| line.contains("denied in shadow") && line.contains("rule=1");
    assert!(log.lines().iter().any(is_tried), "{:?}", log.lines());
}
