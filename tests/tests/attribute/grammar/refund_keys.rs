//! A call may be refunded on one of its subjects.

use std::future::ready;
use std::time::Duration;

use tallygate::{HoldPermit, Limiter, Permit, Policy, Rejection, RejectionKind, Rule, rate_limit};
use tallygate_harness::server::Server;

use crate::grammar::refunds::Failure;

const HOUR: Duration = Duration::from_secs(3_600);

/// Returns the position of the rule that rejected the call; `None` if it ran.
fn rejected_by<T>(result: Result<T, Failure>) -> Option<usize> {
    match result {
        Err(Failure::Rejected(rejection)) => Some(rejection.rule().unwrap().position()),
        _ => None,
    }
}

/// Calls it as often from one network, each time for another user, and then for the first user from another one.
///
/// Returns which rules rejected the last call of each.
async fn rejections<F>(times: u8, call: impl Fn(u8, u8) -> F) -> [Option<usize>; 2]
where
    F: Future<Output = Result<(), Failure>>,
{
    for user in 1..=times {
        assert_eq!(rejected_by(call(user, 1).await), None, "user {user}");
    }
    [rejected_by(call(times + 1, 1).await), rejected_by(call(1, 2).await)]
}

#[rate_limit(
    key = "{ip}",
    rule(count = 2, per = "1h"),
    rule(count = 1, per = "1h", key = "{user}"),
    refund_if = Result::is_err,
    refund_key = "{user}",
    limiter = limiter
)]
async fn refunded_for_the_user(user: u8, ip: u8, limiter: &Limiter) -> Result<(), Failure> {
    Err(Failure::Wrong)
}

#[rate_limit(
    key = "{ip}",
    rule(count = 2, per = "1h"),
    rule(count = 1, per = "1h", key = "{user}"),
    refund_if = Result::is_err,
    refund_key = "{ip}",
    limiter = limiter
)]
async fn refunded_for_the_network(user: u8, ip: u8, limiter: &Limiter) -> Result<(), Failure> {
    Err(Failure::Wrong)
}

async fn one_subject_alone_gets_the_call_back(limiter: &Limiter) {
    let users = rejections(2, |user, ip| refunded_for_the_user(user, ip, limiter)).await;
    assert_eq!(users, [Some(0), None], "the network has two calls, and the user none");
    let networks = rejections(4, |user, ip| refunded_for_the_network(user, ip, limiter)).await;
    assert_eq!(networks, [None, Some(1)], "the network has no call, and the user one");
}

#[tokio::test(start_paused = true)]
async fn a_call_is_refunded_on_the_subject_of_that_key_alone() {
    one_subject_alone_gets_the_call_back(&Limiter::in_memory()).await;
}

#[tokio::test]
async fn a_call_is_refunded_on_the_subject_of_that_key_alone_on_redis() {
    one_subject_alone_gets_the_call_back(&Server::start().limiter().await).await;
}

struct Shop {
    limiter: Limiter,
}

impl Shop {
    #[rate_limit(
        key = "{ip}",
        rule(count = 2, per = "1h"),
        rule(count = 1, per = "1h", key = "{user}"),
        refund_if = |result| matches!(result, Err(Failure::Wrong)),
        refund_key = "{user}",
        limiter = self.limiter
    )]
    fn blocking(&self, user: u8, ip: u8) -> Result<(), Failure> {
        let _ = (user, ip);
        Err(Failure::Wrong)
    }

    #[rate_limit(
        policy = *policy,
        key = "{ip}",
        subject("user", "{user}"),
        refund_if = Result::is_err,
        refund_key = "{user}",
        limiter = self.limiter
    )]
    async fn by_policy(&self, policy: &Policy, user: u8, ip: u8) -> Result<(), Failure> {
        let _ = (user, ip);
        Err(Failure::Wrong)
    }

    #[rate_limit(
        key = "{user}",
        rule(count = 2, per = "1h"),
        prevent_duplicate(key = "{*}", per = "1h"),
        refund_if = Result::is_err,
        refund_key = "{*}",
        limiter = self.limiter
    )]
    async fn once(&self, user: u8, ip: u8) -> Result<(), Failure> {
        Err(Failure::Wrong)
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_that_is_not_async_is_refunded_on_one_subject() {
    let shop = Shop { limiter: Limiter::in_memory() };
    let call = |user, ip| ready(shop.blocking(user, ip));
    assert_eq!(rejections(2, call).await, [Some(0), None]);
}

#[tokio::test(start_paused = true)]
async fn a_subject_of_a_policy_from_elsewhere_is_named_by_its_key() {
    let shop = Shop { limiter: Limiter::in_memory() };
    let rule = |count| Rule::sliding_window(count, HOUR);
    let policy = Policy::builder("p").rule(rule(2)).rule_on("user", rule(1)).build().unwrap();
    assert_eq!(rejections(2, |user, ip| shop.by_policy(&policy, user, ip)).await, [Some(0), None]);
}

#[tokio::test(start_paused = true)]
async fn a_key_of_all_arguments_names_the_subject_that_has_it() {
    let shop = Shop { limiter: Limiter::in_memory() };
    for _ in 0..2 {
        assert_eq!(rejected_by(shop.once(1, 1).await), None);
    }
    let rejected = shop.once(1, 1).await;
    assert!(matches!(rejected, Err(Failure::Rejected(rejection)) if rejection.kind() == RejectionKind::Limited));
}

#[rate_limit(
    rule(count = 1, per = "1h", key = "all"),
    rule(count = 2, per = "1h", key = "{user}"),
    refund_if = Result::is_ok,
    refund_key = "all",
    limiter = limiter
)]
async fn bounded_after_a_refund(user: u8, limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_rule_of_a_subject_that_is_not_refunded_may_deny_what_a_stricter_one_has_given_back() {
    let limiter = Limiter::in_memory();
    for _ in 0..2 {
        bounded_after_a_refund(1, &limiter).await.unwrap();
    }
    assert_eq!(bounded_after_a_refund(1, &limiter).await.unwrap_err().rule().unwrap().position(), 1);
}

/// A response whose body is over when it is dropped.
#[derive(Debug)]
struct Page(Option<Permit>);

impl HoldPermit for Page {
    fn hold_permit(self, permit: Permit) -> Self {
        Self(Some(permit))
    }
}

#[rate_limit(
    key = "{ip}",
    rule(count = 2, per = "1h"),
    rule(count = 1, per = "1h", key = "{user}"),
    until = "body",
    concurrency(limit = 1, lease = "30s"),
    refund_if = Result::is_ok,
    refund_key = "{user}",
    limiter = limiter
)]
async fn streamed(user: u8, ip: u8, limiter: &Limiter) -> Result<Page, Rejection> {
    Ok(Page(None))
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_refunded_on_one_subject_runs_until_its_body_is_over() {
    let limiter = Limiter::in_memory();
    let first = streamed(1, 1, &limiter).await.unwrap();
    assert!(first.0.is_some());
    assert_eq!(streamed(1, 1, &limiter).await.unwrap_err().kind(), RejectionKind::Concurrency);
    drop(first);
    drop(streamed(1, 1, &limiter).await.unwrap());
    let rejection = streamed(1, 1, &limiter).await.unwrap_err();
    assert_eq!(rejection.rule().unwrap().position(), 0, "the network still counts both");
}
