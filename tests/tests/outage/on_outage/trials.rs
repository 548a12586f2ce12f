//! Rules in shadow while Redis is away: they are tried out by whoever decides the call.

use tallygate::RuleStatus;
use tallygate_harness::log::Log;
use tallygate_harness::server::Server;

use super::{
    DecidedBy, HOUR, Limiter, OnOutage, Permit, Policy, Rule, admitted, builder, call, check, hourly, limiter, one_of,
    subject, with_server,
};

/// Five calls an hour, of which the rule in shadow would admit so many.
fn trying(count: u64) -> Policy {
    builder(hourly(5)).rule(Rule::fixed_window(count, HOUR).shadow()).build().unwrap()
}

fn refuse(server: &Server, is_refused: bool) {
    server.ask::<()>(&format!("CONFIG SET maxmemory {}", u8::from(is_refused)));
}

/// Makes a call, and returns its permit with who would have denied it.
async fn tried(limiter: &Limiter, policy: &Policy) -> (Permit, Vec<String>) {
    let (log, _listening) = Log::listen();
    let permit = check(limiter, policy).refundable().await.unwrap().into_result().unwrap();
    let lines = log.lines().into_iter().filter(|line| line.contains("denied in shadow"));
    let by = |line: String| {
        line.split("decided_by=").nth(1)?.split(['"', ' ']).find(|word| !word.is_empty()).map(str::to_owned)
    };
    (permit, lines.filter_map(by).collect())
}

/// What remains of each rule, the one in shadow last.
async fn left(limiter: &Limiter, policy: &Policy) -> Vec<u64> {
    let peeked = limiter.peek(policy, subject()).await.unwrap();
    peeked.report().iter().chain(peeked.shadow_report()).map(RuleStatus::remaining).collect()
}

#[tokio::test]
async fn the_standby_tries_rules_in_shadow_and_denies_nothing_by_them() {
    let (server, limiter) = with_server(OnOutage::Local);
    let policy = trying(2);
    refuse(&server, true);
    for expected in [0, 0, 1] {
        let (permit, by) = tried(&limiter, &policy).await;
        assert_eq!((permit.decided_by(), by), (DecidedBy::Standby, vec!["standby".to_owned(); expected]));
    }
    // Redis has a tally of its own.
    refuse(&server, false);
    let (permit, by) = tried(&limiter, &policy).await;
    assert_eq!((permit.decided_by(), by.len()), (DecidedBy::Backend, 0));
    assert_eq!(left(&limiter, &policy).await, [4, 1]);
    // What was counted in one outage counts in the next.
    refuse(&server, true);
    assert_eq!(tried(&limiter, &policy).await.1, ["standby"]);
    assert_eq!(admitted(&limiter, &policy).await.decided_by(), DecidedBy::Standby);
    assert!(!call(&limiter, &policy).await.is_allowed(), "the enforced rule denies as ever");
}

#[tokio::test]
async fn what_the_standby_has_tried_is_shown_refunded_settled_and_reset_there() {
    let (limiter, policy) = (one_of(1), trying(2));
    let [(first, _), (second, _)] = [tried(&limiter, &policy).await, tried(&limiter, &policy).await];
    assert_eq!(left(&limiter, &policy).await, [3, 0]);
    assert!(first.refund().await.unwrap());
    assert_eq!(left(&limiter, &policy).await, [4, 1]);
    assert!(second.settle(2).await.unwrap());
    assert_eq!(left(&limiter, &policy).await, [3, 0]);
    check(&limiter, &policy).reset().await.unwrap_err();
    assert_eq!(left(&limiter, &policy).await, [5, 2]);
}

#[tokio::test]
async fn one_of_several_processes_tries_its_part_of_a_rule_in_shadow() {
    let (limiter, policy) = (one_of(2), trying(2));
    assert_eq!(tried(&limiter, &policy).await.1.len(), 0);
    assert_eq!(tried(&limiter, &policy).await.1, ["standby"]);
}

#[tokio::test]
async fn where_nobody_decides_in_an_outage_nothing_is_tried() {
    let (allowing, denying, policy) = (limiter(OnOutage::Allow), limiter(OnOutage::Deny), trying(1));
    for _ in 0..3 {
        let (permit, by) = tried(&allowing, &policy).await;
        assert_eq!((permit.decided_by(), by.len()), (DecidedBy::Nobody, 0));
        assert!(!permit.refund().await.unwrap());
    }
    let (log, _listening) = Log::listen();
    check(&denying, &policy).await.unwrap_err();
    assert!(!log.lines().iter().any(|line| line.contains("in shadow")), "{:?}", log.lines());
}
