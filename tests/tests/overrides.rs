//! Rules that are overridden while running: for everybody or for one subject, in one process or in all.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::time::Duration;

use tallygate::{Ban, Decision, Kind, Limiter, Policy, Rule, Subject, TokenBucket};
use tallygate_tests::log::Log;
use tallygate_tests::server::Server;
use tokio::time::{sleep, timeout};

const HOUR: Duration = Duration::from_secs(3_600);
const PATIENCE: Duration = Duration::from_secs(30);

fn hourly(count: u64) -> Rule {
    Rule::sliding_window(count, HOUR)
}

fn policy(count: u64) -> Policy {
    Policy::builder("over.ride").rule(hourly(count)).build().unwrap()
}

fn subject() -> Subject {
    Subject::of("user").and("some:body")
}

async fn override_rules(limiter: &Limiter, count: u64) {
    limiter.override_rules("over.ride", [hourly(count)]).await.unwrap();
}

async fn allowed(limiter: &Limiter, policy: &Policy) -> bool {
    limiter.check(policy, &subject()).await.unwrap().is_allowed()
}

/// Calls until one is denied, and returns how many were admitted.
async fn room(limiter: &Limiter, policy: &Policy, subject: &Subject) -> usize {
    let mut admitted = 0;
    while limiter.check(policy, subject).await.unwrap().is_allowed() {
        admitted += 1;
    }
    admitted
}

/// Calls until the condition holds. Whatever is asked for may take a refresh or two.
async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("it comes true");
}

macro_rules! every_backend {
    ($($behaviour:ident),* $(,)?) => {
        mod in_memory {
            $(
                #[tokio::test]
                async fn $behaviour() {
                    super::$behaviour(tallygate::Limiter::in_memory()).await;
                }
            )*
        }
        mod in_redis {
            $(
                #[tokio::test]
                async fn $behaviour() {
                    let server = tallygate_tests::server::Server::start();
                    super::$behaviour(server.limiter().await).await;
                }
            )*
        }
    };
}

every_backend!(
    other_counts_go_on_with_the_tally,
    a_subject_of_its_own_rules_is_not_like_the_others,
    a_count_of_zero_closes_the_door,
    a_closed_door_reports_what_is_behind_it_and_lets_nobody_in,
    another_structure_begins_its_own_tally_and_leaves_the_old_one,
    the_rules_in_force_are_reported_and_named,
    mistaken_rules_are_refused_in_the_words_of_a_policy,
    policies_of_another_name_are_not_touched,
);

async fn other_counts_go_on_with_the_tally(limiter: Limiter) {
    let policy = policy(3);
    assert_eq!(room(&limiter, &policy, &subject()).await, 3);
    override_rules(&limiter, 5).await;
    assert_eq!(room(&limiter, &policy, &subject()).await, 2);
    override_rules(&limiter, 6).await;
    assert_eq!(room(&limiter, &policy, &subject()).await, 1);
    limiter.clear_override("over.ride").await.unwrap();
    assert_eq!(room(&limiter, &policy, &subject()).await, 0);
}

async fn a_subject_of_its_own_rules_is_not_like_the_others(limiter: Limiter) {
    let (policy, vip) = (policy(3), Subject::of("user").and("vip:1"));
    limiter.override_rules_for("over.ride", &vip, [hourly(10)]).await.unwrap();
    assert_eq!(room(&limiter, &policy, &vip).await, 10);
    assert_eq!(room(&limiter, &policy, &subject()).await, 3);
    override_rules(&limiter, 4).await;
    assert_eq!(room(&limiter, &policy, &vip).await, 0);
    assert_eq!(room(&limiter, &policy, &subject()).await, 1);
    limiter.override_rules_for("over.ride", &vip, [hourly(11)]).await.unwrap();
    limiter.clear_override("over.ride").await.unwrap();
    assert_eq!(room(&limiter, &policy, &vip).await, 1);
    limiter.override_rules_for("over.ride", &vip, [hourly(12)]).await.unwrap();
    limiter.clear_override_for("over.ride", &vip).await.unwrap();
    assert_eq!(room(&limiter, &policy, &vip).await, 0);
}

async fn a_count_of_zero_closes_the_door(limiter: Limiter) {
    let policy = policy(3);
    limiter.override_rules("over.ride", [Rule::fixed_window(9, HOUR), hourly(0)]).await.unwrap();
    for cost in [0, 1, 5] {
        let Decision::Denied(denial) = limiter.check(&policy, &subject()).cost(cost).await.unwrap() else {
            panic!("the door is closed")
        };
        assert_eq!((denial.retry_after(), denial.rule().unwrap().index()), (None, 1));
    }
    let Decision::Denied(_) = limiter.acquire(&policy, &subject()).await.unwrap() else { panic!("it is closed") };
    limiter.clear_override("over.ride").await.unwrap();
    assert_eq!(room(&limiter, &policy, &subject()).await, 3);
}

async fn a_closed_door_reports_what_is_behind_it_and_lets_nobody_in(limiter: Limiter) {
    let ban = Ban::new(2, HOUR, HOUR);
    let policy = Policy::builder("over.ride").rule(hourly(3)).ban(ban).build().unwrap();
    assert!(allowed(&limiter, &policy).await);
    limiter.override_rules("over.ride", [Rule::fixed_window(9, HOUR), hourly(0)]).await.unwrap();
    for cost in [0, 1, 10, 0, 1, 10] {
        for look in [false, true] {
            let check = limiter.check(&policy, &subject()).cost(cost).report();
            let Decision::Denied(denial) = if look { check.peek() } else { check }.await.unwrap() else {
                panic!("the door is closed to a cost of {cost}")
            };
            assert_eq!((denial.kind(), denial.rule().unwrap().index()), (Kind::Limited, 1));
        }
        let peeked = limiter.peek(&policy, &subject()).await.unwrap();
        let report: Vec<_> = peeked.report().iter().map(|rule| (rule.limit(), rule.remaining())).collect();
        assert_eq!((peeked.is_allowed(), report), (false, vec![(9, 9), (0, 0)]));
    }
    limiter.clear_override("over.ride").await.unwrap();
    assert_eq!(room(&limiter, &policy, &subject()).await, 2, "nothing was counted, and nobody was banned");
}

async fn another_structure_begins_its_own_tally_and_leaves_the_old_one(limiter: Limiter) {
    let policy = policy(3);
    assert!(allowed(&limiter, &policy).await);
    let bucket = TokenBucket::new(1, HOUR).capacity(4).initial(2);
    limiter.override_rules("over.ride", [bucket.into()]).await.unwrap();
    assert_eq!(room(&limiter, &policy, &subject()).await, 2);
    limiter.clear_override("over.ride").await.unwrap();
    assert_eq!(room(&limiter, &policy, &subject()).await, 2);
}

async fn the_rules_in_force_are_reported_and_named(limiter: Limiter) {
    let policy = policy(3);
    limiter.override_rules("over.ride", [hourly(2), Rule::fixed_window(1, HOUR)]).await.unwrap();
    let decision = limiter.check(&policy, &subject()).report().await.unwrap();
    let report: Vec<_> = decision.report().iter().map(|rule| (rule.limit(), rule.remaining())).collect();
    assert_eq!(report, [(2, 1), (1, 0)]);
    let Decision::Denied(denial) = limiter.check(&policy, &subject()).await.unwrap() else { panic!("one an hour") };
    let limiting = denial.rule().unwrap();
    assert_eq!((limiting.index(), limiting.rule()), (1, &Rule::fixed_window(1, HOUR)));
}

async fn mistaken_rules_are_refused_in_the_words_of_a_policy(limiter: Limiter) {
    for rules in [vec![], vec![hourly(20), Rule::sliding_window(10, 2 * HOUR)], vec![hourly(1), hourly(2)]] {
        let refused = limiter.override_rules("over.ride", rules.clone()).await.unwrap_err();
        assert_eq!(refused, Policy::builder("over.ride").rules(rules).build().unwrap_err());
    }
    assert_eq!(room(&limiter, &policy(3), &subject()).await, 3);
}

async fn policies_of_another_name_are_not_touched(limiter: Limiter) {
    let other = Policy::builder("over.ride2").rule(hourly(3)).build().unwrap();
    override_rules(&limiter, 1).await;
    assert_eq!(room(&limiter, &other, &subject()).await, 3);
}

#[tokio::test]
async fn every_process_takes_an_override_up_while_it_decides() {
    let server = Server::start();
    let (admin, worker, policy) = (server.limiter().await, server.limiter().await, policy(1_000_000));
    assert!(allowed(&worker, &policy).await);
    override_rules(&admin, 0).await;
    until(async || !allowed(&worker, &policy).await).await;
    admin.clear_override("over.ride").await.unwrap();
    until(async || allowed(&worker, &policy).await).await;
}

#[tokio::test]
async fn an_override_is_in_force_from_the_first_call_of_a_process_and_has_no_end() {
    let server = Server::start();
    override_rules(&server.limiter().await, 2).await;
    let restarted = server.limiter().await;
    assert_eq!(room(&restarted, &policy(5), &subject()).await, 2);
    assert_eq!(server.ask::<i64>("TTL tallygate:!overrides"), -1);
    assert_eq!(server.ask::<String>("HGET tallygate:!overrides over.ride"), "1;w 2 3600000000");
}

#[tokio::test]
async fn an_unreadable_override_is_told_and_ignored() {
    let server = Server::start();
    server.ask::<()>("HSET tallygate:!overrides over.ride 9;everything !version x over.ride:vip 1;w,1");
    let (log, _listening) = Log::listen();
    let limiter = server.limiter().await;
    assert_eq!(room(&limiter, &policy(5), &subject()).await, 5, "its own rules hold");
    let told: Vec<_> = log.lines().into_iter().filter(|line| line.contains("cannot be read and is ignored")).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|line| line.contains("WARN") && line.contains("over.ride") && !line.contains("vip")));
}

#[tokio::test]
async fn the_last_known_overrides_stay_in_force_when_they_cannot_be_read() {
    let server = Server::start();
    let (log, _listening) = Log::listen();
    let limiter = server.limiter().await;
    override_rules(&limiter, 0).await;
    limiter.override_rules_for("over.ride", &Subject::of("other"), [hourly(1_000_000)]).await.unwrap();
    server.ask::<()>("ACL SETUSER default -hget");
    let (policy, other) = (policy(5), Subject::of("other"));
    until(async || {
        assert!(!allowed(&limiter, &policy).await, "the door stays closed");
        assert!(limiter.check(&policy, &other).await.unwrap().is_allowed(), "decisions go on");
        log.lines().iter().any(|line| line.contains("overrides cannot be read"))
    })
    .await;
    server.ask::<()>("ACL SETUSER default +hget");
    server.ask::<()>("DEL tallygate:!overrides");
    until(async || allowed(&limiter, &policy).await).await;
}

#[tokio::test]
async fn there_are_no_more_overrides_than_a_process_takes_up() {
    let server = Server::start();
    let limiter = server.limiter().await;
    override_rules(&limiter, 0).await;
    let mut hset = redis::cmd("HSET");
    hset.arg("tallygate:!overrides");
    for number in 0..9_999 {
        hset.arg(format!("over.ride:user:{number}")).arg("1;w 7 3600000000");
    }
    hset.exec(&mut server.connection()).unwrap();
    let refused = limiter.override_rules_for("over.ride", &subject(), [hourly(1)]).await.unwrap_err();
    assert!(refused.to_string().contains("there are 10000 overrides already"), "{refused}");
    override_rules(&limiter, 1).await;
    limiter.clear_override("over.ride").await.unwrap();
    let somebody = Subject::of("user").and(9_998);
    assert_eq!(room(&limiter, &policy(3), &somebody).await, 7, "all of them were taken up");
    server.ask::<()>("HSET tallygate:!overrides a 1;w,1 b 1;w,1 !version many");
    let (log, _listening) = Log::listen();
    until(async || {
        assert!(!limiter.check(&policy(3), &somebody).await.unwrap().is_allowed());
        log.lines().iter().any(|line| line.contains("too many overrides"))
    })
    .await;
    assert_eq!(room(&limiter, &policy(3), &Subject::of("user").and(9_997)).await, 7, "the last known ones hold");
}

#[tokio::test]
async fn programs_without_overrides_ask_for_them_about_once_a_second() {
    let server = Server::start();
    let limiter = server.limiter().await;
    let (policy, started) = (policy(1_000_000), std::time::Instant::now());
    for _ in 0..2_000 {
        assert!(allowed(&limiter, &policy).await);
    }
    let seconds = usize::try_from(started.elapsed().as_secs()).unwrap();
    assert!(server.calls("hget") <= seconds + 2, "{} in {seconds}s", server.calls("hget"));
    assert_eq!(server.calls("hgetall"), 0);
}
