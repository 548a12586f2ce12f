//! Duplicates that are released, and submissions as a whole.

use std::any::Any;
use std::future::pending;
use std::time::Duration;

use tallygate::{Limiter, Policy, Rejection, RejectionKind, Rule, Subject, rate_limit};
use tallygate_harness::cluster::Cluster;
use tallygate_harness::server::{Server, away, connected, patient};

/// What became of a submission.
#[derive(Debug, PartialEq)]
enum Failure {
    Rejected(RejectionKind),
    Failed,
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection.kind())
    }
}

#[derive(Debug)]
struct Order {
    item: &'static str,
    number: u32,
}

const ORDER: Order = Order { item: "tea", number: 2 };

struct Shop {
    limiter: Limiter,
}

/// Returns shops of every store, whose servers end with these.
async fn shops(servers: &mut Vec<Box<dyn Any>>) -> Vec<Shop> {
    let (server, cluster) = (Server::start(), Cluster::shared());
    let limiters = [
        Limiter::in_memory(),
        away(|builder| builder),
        server.limiter().await,
        connected(&patient().prefix("releases"), &cluster.url()).await,
    ];
    servers.push(Box::new((server, cluster)));
    limiters.into_iter().map(|limiter| Shop { limiter }).collect()
}

impl Shop {
    #[rate_limit(
        name = "releases.submit",
        key = "{user}",
        rule(count = 3, per = "1h"),
        prevent_duplicate(per = "1h", release_if = Result::is_err),
        limiter = self.limiter
    )]
    async fn submit(&self, user: &str, succeeds: bool) -> Result<(), Failure> {
        let _ = user;
        if succeeds { Ok(()) } else { Err(Failure::Failed) }
    }

    #[rate_limit(
        name = "releases.order",
        key = "{user}",
        rule(count = 3, per = "1h"),
        prevent_duplicate(per = "1h", key = "{*:debug:hash}", release_if = |result: &Result<u32, Failure>| *result == Ok(0)),
        limiter = self.limiter
    )]
    async fn order(&self, user: &str, order: &Order) -> Result<u32, Failure> {
        let _ = (user, order.item);
        Ok(order.number)
    }

    #[rate_limit(
        name = "releases.both",
        key = "{user}",
        rule(count = 1, per = "1h"),
        prevent_duplicate(per = "30m", release_if = Result::is_err),
        refund_if = |result: &Result<(), Failure>| *result == Err(Failure::Failed),
        limiter = self.limiter
    )]
    async fn both(&self, user: &str, result: Result<(), Failure>) -> Result<(), Failure> {
        let _ = user;
        result
    }

    #[rate_limit(
        name = "releases.banned",
        key = "{user}",
        rule(count = 3, per = "1h"),
        prevent_duplicate(per = "1h", release_if = Result::is_err),
        ban(denials = 2, within = "1h", duration = "1h"),
        limiter = self.limiter
    )]
    async fn may_be_banned(&self, user: &str, succeeds: bool) -> Result<(), Failure> {
        let _ = user;
        if succeeds { Ok(()) } else { Err(Failure::Failed) }
    }

    #[rate_limit(
        name = "releases.hang",
        key = "{*}",
        prevent_duplicate(per = "1h", release_if = Result::is_err),
        limiter = self.limiter
    )]
    async fn hang(&self, user: &str) -> Result<(), Failure> {
        let _ = user;
        pending().await
    }
}

impl Shop {
    #[rate_limit(
        name = "releases.settle",
        key = "{customer}",
        rule(count = 100, per = "1h"),
        cost = 30,
        refund_if = Result::is_err,
        settle = |used: &Result<u64, Failure>| *used.as_ref().unwrap_or(&0),
        limiter = self.limiter
    )]
    async fn use_up(&self, customer: &str, used: Result<u64, Failure>) -> Result<u64, Failure> {
        let _ = customer;
        used
    }
}

const DUPLICATE: Result<(), Failure> = Err(Failure::Rejected(RejectionKind::Duplicate));
const LIMITED: Result<(), Failure> = Err(Failure::Rejected(RejectionKind::Limited));

#[tokio::test]
async fn a_failed_submission_may_be_repeated_at_once_and_still_counts() {
    let mut servers = Vec::new();
    for shop in shops(&mut servers).await {
        assert_eq!(shop.submit("zoe", false).await, Err(Failure::Failed));
        assert_eq!(shop.submit("zoe", false).await, Err(Failure::Failed));
        assert_eq!(shop.submit("zoe", true).await, Ok(()));
        assert_eq!(shop.submit("zoe", true).await, DUPLICATE);
        assert_eq!(shop.submit("ann", true).await, Ok(()));
        assert_eq!(shop.submit("bob", false).await, Err(Failure::Failed));
        assert_eq!(shop.submit("bob", false).await, Err(Failure::Failed));
        assert_eq!(shop.submit("bob", false).await, Err(Failure::Failed));
        assert_eq!(shop.submit("bob", false).await, LIMITED);
    }
}

#[tokio::test]
async fn a_submission_is_the_same_if_all_its_arguments_are() {
    let mut servers = Vec::new();
    for shop in shops(&mut servers).await {
        assert_eq!(shop.order("zoe", &ORDER).await, Ok(2));
        assert_eq!(shop.order("zoe", &ORDER).await.map(drop), DUPLICATE);
        assert_eq!(shop.order("ann", &ORDER).await, Ok(2));
        assert_eq!(shop.order("zoe", &Order { number: 0, ..ORDER }).await, Ok(0));
        assert_eq!(shop.order("zoe", &Order { number: 0, ..ORDER }).await, Ok(0));
        assert_eq!(shop.order("zoe", &Order { number: 3, ..ORDER }).await.map(drop), LIMITED);
    }
}

#[tokio::test]
async fn a_call_that_is_refunded_is_no_duplicate_and_counts_nowhere() {
    let mut servers = Vec::new();
    for shop in shops(&mut servers).await {
        for _ in 0..3 {
            assert_eq!(shop.both("zoe", Err(Failure::Failed)).await, Err(Failure::Failed));
        }
        let rejected = || Err(Failure::Rejected(RejectionKind::Banned));
        assert_eq!(shop.both("zoe", rejected()).await, rejected());
        assert_eq!(shop.both("zoe", Ok(())).await, LIMITED);
    }
}

#[tokio::test]
async fn only_what_is_denied_counts_towards_a_ban_and_not_what_was_released() {
    let mut servers = Vec::new();
    for shop in shops(&mut servers).await {
        for _ in 0..2 {
            assert_eq!(shop.may_be_banned("zoe", false).await, Err(Failure::Failed));
        }
        assert_eq!(shop.may_be_banned("zoe", true).await, Ok(()));
        for _ in 0..2 {
            assert_eq!(shop.may_be_banned("zoe", true).await, DUPLICATE);
        }
        let banned = Err(Failure::Rejected(RejectionKind::Banned));
        assert_eq!(shop.may_be_banned("zoe", true).await, banned);
        assert_eq!(shop.may_be_banned("ann", true).await, Ok(()));
    }
}

#[tokio::test]
async fn a_call_counts_as_what_its_body_has_used() {
    let mut servers = Vec::new();
    for shop in shops(&mut servers).await {
        for _ in 0..5 {
            assert_eq!(shop.use_up("zoe", Ok(10)).await, Ok(10));
            assert_eq!(shop.use_up("zoe", Err(Failure::Failed)).await, Err(Failure::Failed));
        }
        assert_eq!(shop.use_up("zoe", Ok(1_000)).await, Ok(1_000));
        assert_eq!(shop.use_up("zoe", Ok(0)).await.map(drop), LIMITED);
    }
}

#[tokio::test]
async fn a_submission_that_is_dropped_is_not_released_in_memory() {
    let shop = Shop { limiter: Limiter::in_memory() };
    let dropped = tokio::time::timeout(Duration::from_millis(1), shop.hang("zoe")).await;
    assert!(dropped.is_err());
    assert_eq!(shop.hang("zoe").await, DUPLICATE);
}

#[tokio::test]
async fn a_permit_is_refunded_on_a_subject_that_the_policy_has() {
    let mut servers = Vec::new();
    let rules = Policy::builder("releases.by_hand").rule(Rule::sliding_window(9, Duration::from_secs(60)));
    let rules = rules.rule_on("network", Rule::token_bucket(5, Duration::from_secs(60)));
    let policy = rules.rule_on("all", Rule::fixed_window(7, Duration::from_secs(60))).build().unwrap();
    let subjects = ["zoe", "network", "all"].map(Subject::of);
    for Shop { limiter } in shops(&mut servers).await {
        let check = || {
            let check = limiter.check(&policy, &subjects[0]).subject("network", &subjects[1]);
            check.subject("all", &subjects[2]).refundable()
        };
        let permits =
            [check().cost(2).await, check().cost(2).await].map(|decision| decision.unwrap().into_result().unwrap());
        let [first, second] = permits;
        assert!(first.refund_on("network").await.unwrap());
        let error = second.refund_on("networks").await.unwrap_err();
        let expected = "policy `releases.by_hand` has no rule on `networks`; `refund` refunds all of its rules";
        assert_eq!(error.to_string(), expected);
        let report = check().peek().report().await.unwrap();
        let remaining: Vec<_> = report.report().iter().map(tallygate::RuleStatus::remaining).collect();
        assert_eq!(remaining, [5, 3, 3]);
    }
}
