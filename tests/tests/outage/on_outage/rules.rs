//! What this process admits as one of several: its part of the count of each rule, rounded up.

use tallygate::testing::ManualClock;
use tallygate::{
    BackendErrorKind, Ban, DecidedBy, Limiter, Policy, RejectionKind, Rule, Schedule, Subject, TokenBucket,
};
use tallygate_harness::clocked::{START_US, time};
use tallygate_harness::server::away;

use super::{Duration, HOUR, admitted, builder, call, check, denied, hourly, one_of, policy, room, subject};

#[tokio::test]
async fn the_count_of_each_algorithm_is_divided_and_rounded_up() {
    let daily = Schedule::parse("@daily", "UTC").unwrap();
    for (processes, expected) in [(1, 10), (2, 5), (3, 4), (10, 1), (1_000, 1)] {
        for rule in [
            hourly(10),
            Rule::fixed_window(10, HOUR),
            Rule::sliding_counter(10, HOUR),
            Rule::token_bucket(10, 100 * HOUR),
            Rule::from_bucket(1, TokenBucket::new(100 * HOUR).with_capacity(10)),
            Rule::from_bucket(1, TokenBucket::new(100 * HOUR).with_capacity(99).with_initial(10)),
            Rule::cron(10, daily.clone()),
            Rule::concurrency(10, HOUR),
        ] {
            let text = rule.to_string();
            assert_eq!(room(&one_of(processes), &policy(rule)).await, expected, "{text}, one of {processes}");
        }
        let duplicate = policy(Rule::duplicate(HOUR));
        assert_eq!(room(&one_of(processes), &duplicate).await, 1);
    }
}

#[tokio::test]
async fn a_bucket_fills_with_a_part_of_its_flow() {
    let clock = ManualClock::new(time(START_US));
    let limiter = away(|builder| builder.processes(4).clock(&clock));
    let policy = policy(Rule::from_bucket(40, TokenBucket::new(HOUR).with_capacity(80)));
    assert_eq!(room(&limiter, &policy).await, 20);
    clock.advance(HOUR);
    assert_eq!(room(&limiter, &policy).await, 10);
    clock.advance(10 * HOUR);
    assert_eq!(room(&limiter, &policy).await, 20);
}

#[tokio::test]
async fn a_denial_and_a_report_show_the_part_that_was_enforced() {
    let (limiter, policy) = (one_of(4), policy(hourly(10)));
    let decision = check(&limiter, &policy).cost(2).report().await.unwrap();
    assert_eq!(decision.decided_by(), DecidedBy::Standby);
    let status = &decision.report()[0];
    assert_eq!((status.limit(), status.remaining(), status.reset()), (3, 1, HOUR));
    admitted(&limiter, &policy).await;
    let reported = check(&limiter, &policy).report().await.unwrap().into_result().unwrap_err();
    for denial in [denied(&limiter, &policy).await, reported] {
        assert_eq!((denial.kind(), denial.policy().name()), (RejectionKind::Limited, "on.outage"));
        assert_eq!(denial.rule().unwrap().count(), 3);
        assert!(denial.to_string().starts_with("too many requests: at most 3 per 1h; try again in"), "{denial}");
        assert!(denial.retry_after().is_some_and(|wait| wait <= HOUR));
    }
}

#[tokio::test]
async fn a_call_that_costs_more_than_the_part_is_not_decided_and_one_beyond_the_rule_is_denied() {
    let clock = ManualClock::new(time(START_US));
    let limiter = away(|builder| builder.processes(4).clock(&clock));
    let bucket = Rule::from_bucket(1, TokenBucket::new(HOUR).with_capacity(10));
    for rule in [hourly(10), Rule::fixed_window(10, HOUR), bucket] {
        let policy = policy(rule);
        let cost = |cost| check(&limiter, &policy).cost(cost);
        let error = cost(4).await.unwrap_err();
        assert_eq!(error.kind(), BackendErrorKind::Away);
        let text = "redis is away, and a call of cost 4 is more than one of 4 processes may admit meanwhile";
        assert_eq!(error.to_string(), text);
        assert!(cost(10).report().await.is_err() && cost(10).peek().await.is_err());
        assert!(cost(4).wait(HOUR).await.is_err());
        let denial = cost(11).await.unwrap().into_result().unwrap_err();
        assert_eq!((denial.retry_after(), denial.decided_by()), (None, DecidedBy::Standby));
        assert!(cost(3).await.unwrap().is_allowed(), "nothing was counted");
        assert!(!cost(3).await.unwrap().is_allowed());
        clock.advance(100 * HOUR);
    }
}

#[tokio::test]
async fn a_closed_limit_stays_closed() {
    let closed = policy(hourly(10)).with_counts([0]);
    for processes in [1, 4] {
        assert_eq!(denied(&one_of(processes), &closed).await.retry_after(), None);
    }
}

#[tokio::test]
async fn several_subjects_are_decided_together() {
    let policy = builder(hourly(4)).rule_on("network", hourly(6)).build().unwrap();
    let limiter = one_of(2);
    let network = Subject::of("n");
    let mut admitted = Vec::new();
    for user in [1, 1, 1, 2, 2, 2] {
        let decision = limiter.check(&policy, &Subject::of(user)).subject("network", &network).await.unwrap();
        assert_eq!(decision.decided_by(), DecidedBy::Standby);
        admitted.push(decision.is_allowed());
    }
    assert_eq!(admitted, [true, true, false, true, false, false]);
    let error = check(&limiter, &policy).await.unwrap_err();
    assert!(error.to_string().contains("which the call left out"), "{error}");
}

#[tokio::test]
async fn as_many_denials_lead_to_a_ban_as_the_policy_says() {
    let policy = builder(hourly(10)).ban(Ban::new(4, HOUR, 2 * HOUR)).build().unwrap();
    let limiter = one_of(5);
    assert_eq!(room(&limiter, &policy).await, 2);
    for _ in 0..3 {
        assert_eq!(denied(&limiter, &policy).await.kind(), RejectionKind::Limited);
    }
    let denial = denied(&limiter, &policy).await;
    assert_eq!((denial.kind(), denial.decided_by()), (RejectionKind::Banned, DecidedBy::Standby));
}

#[tokio::test]
async fn limiters_that_divide_by_different_numbers_share_a_policy() {
    let policy = policy(hourly(12));
    let limiters: Vec<Limiter> = [3, 4, 1].map(one_of).into();
    for _ in 0..2 {
        for (limiter, part) in limiters.iter().zip([4, 3, 12]) {
            assert_eq!(
                call(limiter, &policy)
                    .await
                    .into_result()
                    .map_or_else(|denial| denial.rule().unwrap().count(), |_| part),
                part
            );
        }
    }
    let report = limiters[1].peek(&policy, subject()).await.unwrap();
    assert_eq!((report.report()[0].limit(), report.report()[0].remaining()), (3, 1));
}

#[tokio::test]
async fn counts_of_each_call_are_divided_too() {
    let (limiter, policy) = (one_of(2), policy(hourly(1)));
    for (count, expected) in [(4, 2), (5, 1), (10, 2)] {
        assert_eq!(room(&limiter, &policy.with_counts([count])).await, expected, "{count}");
    }
}

#[tokio::test]
async fn many_subjects_are_bounded_as_in_memory_and_a_replaced_one_keeps_its_limit() {
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, Duration::from_secs(3_600))).build().unwrap();
    let mut is_other_allowed = false;
    // Each limiter has other hashes, by which two subjects seem to be one in one of 16,384 cases.
    for _ in 0..3 {
        let limiter = away(|builder| builder.max_subjects(1));
        let is_allowed = async |number: u32| limiter.check(&policy, &Subject::of(number)).await.unwrap().is_allowed();
        assert!(is_allowed(1).await && !is_allowed(1).await);
        is_other_allowed |= is_allowed(2).await;
        assert!(!is_allowed(1).await);
    }
    assert!(is_other_allowed);
}
