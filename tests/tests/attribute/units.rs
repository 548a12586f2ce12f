//! Calls that use more than one unit: tokens and bytes beside calls.

use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;

use tallygate::{Check, Limiter, Policy, Rejection, RejectionKind, Rule, rate_limit};

const HOUR: Duration = Duration::from_secs(3_600);

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

const LIMITED: Failure = Failure::Rejected(RejectionKind::Limited);

/// Returns how much each rule has counted.
async fn used(check: Check<'_>) -> Vec<u64> {
    let peeked = check.peek().report().await.expect("the limiter decides");
    peeked.report().iter().map(tallygate::RuleStatus::used).collect()
}

#[derive(Debug, PartialEq)]
struct Reply {
    tokens: u64,
    bytes: u64,
}

#[rate_limit(
    key = "{user}",
    rule(count = 4, per = "1h"),
    rule(count = 100, per = "1h", unit = "tokens"),
    rule(count = 1_000, per = "1h", unit = "bytes"),
    unit("tokens", cost = most, settle = |reply| reply.as_ref().ok().map(|reply| reply.tokens)),
    unit("bytes", settle = |reply| reply.as_ref().map_or(0, |reply| reply.bytes)),
    limiter = limiter,
    check_fn = chat_limit
)]
async fn chat(limiter: &Limiter, user: &str, most: u64, reply: Option<Reply>) -> Result<Reply, Failure> {
    let _ = (limiter, user, most);
    reply.ok_or(Failure::Failed)
}

#[tokio::test]
async fn what_is_reserved_of_a_unit_becomes_what_was_used() {
    let limiter = Limiter::in_memory();
    let counted = || used(chat_limit(&limiter, "zoe", 0, None));
    let reply = |tokens, bytes| Some(Reply { tokens, bytes });
    chat(&limiter, "zoe", 60, reply(10, 400)).await.unwrap();
    assert_eq!(counted().await, [1, 10, 400]);
    assert_eq!(chat(&limiter, "zoe", 91, reply(0, 0)).await, Err(LIMITED));
    assert_eq!(counted().await, [1, 10, 400], "a call that lacks tokens counts nowhere");
    chat(&limiter, "zoe", 90, reply(20, 800)).await.unwrap();
    assert_eq!(counted().await, [2, 30, 1_000], "a settlement may pass the limit, which is all used then");
    assert_eq!(chat(&limiter, "zoe", 0, reply(0, 0)).await, Err(LIMITED));
    assert!(chat_limit(&limiter, "kim", 0, None).peek().await.unwrap().is_allowed());
}

#[tokio::test]
async fn a_settlement_without_an_amount_leaves_the_cost() {
    let limiter = Limiter::in_memory();
    assert_eq!(chat(&limiter, "zoe", 60, None).await, Err(Failure::Failed));
    assert_eq!(used(chat_limit(&limiter, "zoe", 0, None)).await, [1, 60, 0]);
}

#[rate_limit(
    rule(count = 100, per = "1h", unit = "tokens"),
    rule(count = 10, per = "1h"),
    cost = 5,
    settle = |_| 1,
    unit("tokens", cost = 30, settle = |used| u64::from(*used.as_ref().unwrap_or(&0))),
    refund_if = Result::is_err,
    limiter = limiter,
    check_fn = embed_limit
)]
fn embed(limiter: &Limiter, used: Option<u32>) -> Result<u32, Failure> {
    let _ = limiter;
    used.ok_or(Failure::Failed)
}

#[tokio::test]
async fn calls_and_units_are_settled_and_refunded_together_in_a_function_that_is_not_async() {
    let limiter = Limiter::in_memory();
    embed(&limiter, Some(7)).unwrap();
    assert_eq!(used(embed_limit(&limiter, None)).await, [7, 1]);
    assert_eq!(embed(&limiter, None), Err(Failure::Failed));
    assert_eq!(used(embed_limit(&limiter, None)).await, [7, 1]);
    embed(&limiter, Some(99)).unwrap();
    assert_eq!(embed(&limiter, Some(0)), Err(LIMITED));
    assert_eq!(used(embed_limit(&limiter, None)).await, [100, 2]);
}

static UPLOADS: LazyLock<Policy> = LazyLock::new(|| {
    let rules = [Rule::sliding_window(2, HOUR), Rule::sliding_window(500, HOUR).counting("bytes")];
    Policy::builder("units.uploads").rules(rules).build().expect("the policy is sound")
});

#[rate_limit(policy = UPLOADS, key = "{user}", unit("bytes", cost = file.len() as u64), limiter = limiter)]
fn upload(limiter: &Limiter, user: &str, file: &[u8]) -> impl Future<Output = Result<(), Failure>> + use<> {
    let _ = (limiter, user, file);
    async { Ok(()) }
}

#[tokio::test]
async fn a_future_uses_what_its_arguments_cost_in_a_unit_of_a_policy() {
    let limiter = Limiter::in_memory();
    assert_eq!(upload(&limiter, "zoe", &[0; 300]).await, Ok(()));
    assert_eq!(upload(&limiter, "zoe", &[0; 300]).await, Err(LIMITED));
    assert_eq!(upload(&limiter, "zoe", &[0; 200]).await, Ok(()));
    assert_eq!(upload(&limiter, "zoe", &[]).await, Err(LIMITED), "two calls are all");
}

#[rate_limit(policy = UPLOADS, unit("rows", cost = 3), limiter = limiter)]
async fn import(limiter: &Limiter) -> Result<(), Failure> {
    let _ = limiter;
    Ok(())
}

#[tokio::test]
async fn a_unit_that_the_policy_does_not_count_admits_nothing() {
    assert_eq!(import(&Limiter::in_memory()).await, Err(Failure::Rejected(RejectionKind::Unavailable)));
}
