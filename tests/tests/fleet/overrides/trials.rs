//! Single rules that are tried out in shadow, beside those that are enforced.

use std::time::Duration;

use tallygate::{Limiter, Permit, Policy, Rule, RuleStatus, Subject};
use tallygate_harness::log::Log;

use super::{HOUR, every_backend, hourly, room, subject};

every_backend!(
    each_rule_in_shadow_is_reported_by_itself_and_denies_nothing,
    rules_in_shadow_count_only_what_the_others_admit,
    a_refund_and_a_settlement_are_those_of_rules_in_shadow_too,
    a_refund_on_a_subject_that_only_rules_in_shadow_count_changes_no_answer,
    a_reset_forgets_what_rules_in_shadow_have_counted,
    an_override_puts_one_rule_in_shadow_and_back,
    a_rule_in_shadow_counts_a_subject_of_its_own,
    a_policy_of_rules_in_shadow_alone_is_in_shadow,
    a_rule_is_tried_beside_those_of_an_override,
    a_caller_that_waits_is_tried_once,
);

/// Makes a call, and returns its permit with the positions of the rules that would have denied it.
async fn call(limiter: &Limiter, policy: &Policy, cost: u64) -> (Option<Permit>, Vec<usize>) {
    let (log, _listening) = Log::listen();
    let decision = limiter.check(policy, &subject()).cost(cost).refundable().await.unwrap();
    let permit = decision.into_result().ok();
    let lines = log.lines().into_iter();
    let tried = lines.filter(|line| line.contains("denied in shadow") && line.contains(policy.name()));
    let rule = |line: String| line.split("rule=").nth(1)?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    let mut tried: Vec<_> = tried.filter_map(rule).collect();
    // Rules in shadow are asked together, so either may answer first.
    tried.sort_unstable();
    (permit, tried)
}

async fn tried(limiter: &Limiter, policy: &Policy) -> (bool, Vec<usize>) {
    let (permit, tried) = call(limiter, policy, 1).await;
    (permit.is_some(), tried)
}

fn trying(tried: impl IntoIterator<Item = Rule>) -> Policy {
    Policy::builder("over.ride").rule(hourly(4)).rules(tried).build().unwrap()
}

async fn each_rule_in_shadow_is_reported_by_itself_and_denies_nothing(limiter: Limiter) {
    let policy = trying([hourly(1).shadow(), Rule::fixed_window(2, HOUR).named("fixed").shadow()]);
    let expected = [(true, vec![]), (true, vec![1]), (true, vec![1, 2]), (true, vec![1, 2]), (false, vec![])];
    for (number, expected) in expected.into_iter().enumerate() {
        assert_eq!(tried(&limiter, &policy).await, expected, "call {number}");
    }
    let report = limiter.peek(&policy, &subject()).await.unwrap();
    assert_eq!(report.report().len(), 1, "a report is about rules that are enforced");
    let status = |status: &RuleStatus| (status.position(), status.remaining(), status.rule().is_shadow());
    assert_eq!(report.shadow_report().iter().map(status).collect::<Vec<_>>(), [(1, 0, true), (2, 0, true)]);
    let other = limiter.peek(&policy, &Subject::of("other")).await.unwrap();
    assert_eq!(other.shadow_report().iter().map(status).collect::<Vec<_>>(), [(1, 1, true), (2, 2, true)]);
    let unasked = limiter.check(&policy, &Subject::of("other")).peek().await.unwrap();
    assert!(unasked.report().is_empty() && unasked.shadow_report().is_empty());
}

async fn rules_in_shadow_count_only_what_the_others_admit(limiter: Limiter) {
    let policy = trying([Rule::fixed_window(3, HOUR).shadow()]);
    assert_eq!(call(&limiter, &policy, 4).await.1, [1]);
    assert!(call(&limiter, &policy, 3).await.0.is_none());
    limiter.check(&policy, &subject()).reset().await.unwrap();
    assert_eq!(call(&limiter, &policy, 3).await.1, [0_usize; 0]);
}

async fn a_refund_and_a_settlement_are_those_of_rules_in_shadow_too(limiter: Limiter) {
    let policy = trying([Rule::fixed_window(3, HOUR).shadow()]);
    let (permit, _) = call(&limiter, &policy, 3).await;
    assert!(permit.unwrap().refund().await.unwrap());
    let (permit, tried) = call(&limiter, &policy, 3).await;
    assert_eq!(tried, [0_usize; 0]);
    assert!(permit.unwrap().settle(1).await.unwrap());
    assert_eq!(call(&limiter, &policy, 2).await.1, [0_usize; 0]);
    assert_eq!(call(&limiter, &policy, 1).await.1, [1]);
}

async fn a_refund_on_a_subject_that_only_rules_in_shadow_count_changes_no_answer(limiter: Limiter) {
    let builder = Policy::builder("over.refunded").rule(hourly(4)).rule_on("network", hourly(1).named("network"));
    let (policy, user, network) = (builder.build().unwrap(), subject(), Subject::of("network"));
    let call = || async {
        let check = limiter.check(&policy, &user).subject("network", &network);
        check.refundable().await.unwrap().into_result().unwrap()
    };
    assert!(call().await.refund_on("network").await.unwrap());
    limiter.override_policy("over.refunded").text("network = 1 per fixed 1h shadow").set().await.unwrap();
    let (log, _listening) = Log::listen();
    let (counted, denied) = (call().await, call().await);
    let tried = || log.lines().iter().filter(|line| line.contains("denied in shadow")).count();
    assert!(!denied.refund_on("network").await.unwrap(), "it was not counted");
    assert!(!counted.refund_on("network").await.unwrap(), "no answer depends on rules in shadow");
    assert_eq!(tried(), 1);
    let again = call().await;
    assert_eq!(tried(), 1, "it was refunded all the same");
    let unknown = again.refund_on("networks").await.unwrap_err().to_string();
    assert!(unknown.contains("has no rule on `networks`"), "{unknown}");
    let peeked = limiter.peek(&policy, &user).subject("network", &network).await.unwrap();
    assert_eq!(peeked.report().iter().map(RuleStatus::remaining).collect::<Vec<_>>(), [0], "the other rule counts on");
}

async fn a_reset_forgets_what_rules_in_shadow_have_counted(limiter: Limiter) {
    let policy = trying([hourly(1).shadow()]);
    for _ in 0..2 {
        assert_eq!(tried(&limiter, &policy).await, (true, vec![]));
        assert_eq!(tried(&limiter, &policy).await, (true, vec![1]));
        limiter.check(&policy, &subject()).reset().await.unwrap();
    }
}

async fn an_override_puts_one_rule_in_shadow_and_back(limiter: Limiter) {
    let policy = Policy::builder("over.burst").rule(hourly(4)).rule(Rule::fixed_window(1, HOUR).named("burst"));
    let policy = policy.build().unwrap();
    assert!(tried(&limiter, &policy).await.0 && !tried(&limiter, &policy).await.0);
    limiter.override_policy("over.burst").text("burst = 1 per fixed 1h shadow").set().await.unwrap();
    assert_eq!(tried(&limiter, &policy).await, (true, vec![]), "it is counted anew");
    assert_eq!(tried(&limiter, &policy).await, (true, vec![1]));
    limiter.override_policy("over.burst").clear().await.unwrap();
    assert!(!tried(&limiter, &policy).await.0);
}

async fn a_rule_in_shadow_counts_a_subject_of_its_own(limiter: Limiter) {
    let policy = Policy::builder("over.ride").rule(hourly(4)).rule_on("network", hourly(1).shadow()).build().unwrap();
    let from = |network: &'static str| {
        let (limiter, policy) = (&limiter, &policy);
        async move {
            let (log, _listening) = Log::listen();
            let network = Subject::of(network);
            let decision = limiter.check(policy, &subject()).subject("network", &network).await.unwrap();
            assert!(decision.is_allowed());
            log.lines().iter().filter(|line| line.contains("denied in shadow")).count()
        }
    };
    assert_eq!((from("a").await, from("b").await, from("a").await), (0, 0, 1));
    assert!(limiter.check(&policy, &subject()).await.is_err(), "the call left it out");
}

async fn a_policy_of_rules_in_shadow_alone_is_in_shadow(limiter: Limiter) {
    let policy = Policy::builder("over.ride").rule(hourly(1).shadow()).build().unwrap();
    assert!(policy.is_shadow());
    assert_eq!(tried(&limiter, &policy).await, (true, vec![]));
    assert_eq!(tried(&limiter, &policy).await, (true, vec![0]));
    let enforced = super::policy(1);
    limiter.override_policy("over.ride").text("1 per 1h shadow").set().await.unwrap();
    assert_eq!(tried(&limiter, &enforced).await, (true, vec![0]));
    limiter.override_policy("over.ride").text("1 per 1h").set().await.unwrap();
    // The rules of an override are in force, and none of them is in shadow.
    let _ = tried(&limiter, &policy).await;
    assert_eq!(tried(&limiter, &policy).await, (false, vec![]));
    limiter.override_policy("over.ride").clear().await.unwrap();
    assert!(!tried(&limiter, &enforced).await.0);
}

async fn a_rule_is_tried_beside_those_of_an_override(limiter: Limiter) {
    let policy = super::policy(1);
    limiter.override_policy("over.ride").text("3 per 1h, 2 per 1h shadow").set().await.unwrap();
    for expected in [(true, vec![]), (true, vec![]), (true, vec![1]), (false, vec![])] {
        assert_eq!(tried(&limiter, &policy).await, expected);
    }
    assert_eq!(room(&limiter, &policy, &subject()).await, 0);
}

async fn a_caller_that_waits_is_tried_once(limiter: Limiter) {
    let policy = Policy::builder("over.ride").rule(Rule::sliding_window(1, Duration::from_millis(50)));
    let (policy, subject) = (policy.rule(hourly(2).shadow()).build().unwrap(), subject());
    for _ in 0..2 {
        let waiting = limiter.check(&policy, &subject).wait(Duration::from_secs(30));
        assert!(waiting.await.unwrap().is_allowed());
    }
    let (log, _listening) = Log::listen();
    let waiting = limiter.check(&policy, &subject).wait(Duration::from_secs(30));
    assert!(waiting.await.unwrap().is_allowed());
    assert_eq!(log.lines().iter().filter(|line| line.contains("denied in shadow")).count(), 1);
}
