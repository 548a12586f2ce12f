//! Calls that use more than one unit: tokens and bytes beside calls.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use tallygate::{
    BackendError, BackendErrorKind, Check, Limiter, Meter, Policy, RejectionKind, Rule, Subject, rate_limit,
};

use super::released::Failure;

const HOUR: Duration = Duration::from_secs(3_600);

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

#[rate_limit(
    key = "{user}",
    rule(count = 100, per = "1h"),
    rule(count = 100, per = "1h", unit = "tokens"),
    rule(count = 1_000, per = "1h", unit = "bytes"),
    concurrency(limit = 1, lease = "1m"),
    unit("tokens", cost = 40, settle = metered),
    unit("bytes", settle = |answer| answer.as_ref().map_or(0, |answer| answer.len() as u64)),
    refund_if = Result::is_err,
    skip_if = user == "admin",
    limiter = limiter,
    check_fn = stream_limit
)]
async fn stream<T: AsRef<[u64]>>(limiter: &Limiter, user: &str, pieces: T) -> Result<Vec<Meter>, Failure> {
    let _ = (limiter, user);
    let tokens = tallygate::meter("tokens").unwrap();
    pieces.as_ref().iter().for_each(|piece| tokens.add(*piece));
    if tokens.used() == 0 { Err(Failure::Failed) } else { Ok(vec![tokens; pieces.as_ref().len()]) }
}

#[tokio::test]
async fn what_is_metered_counts_when_the_call_and_its_last_meter_have_ended() {
    let limiter = Limiter::in_memory();
    let counted = || used(stream_limit(&limiter, "zoe", [0]));
    let mut meters = stream(&limiter, "zoe", [3, 4]).await.unwrap();
    assert_eq!(counted().await, [1, 40, 0, 0], "the call has ended, and its meters have not");
    let task = meters.pop().unwrap();
    tokio::spawn(async move { task.add(10) }).await.unwrap();
    let thread = meters.pop().unwrap();
    std::thread::spawn(move || thread.add(100)).join().unwrap();
    assert_eq!(counted().await, [1, 100, 2, 0], "all units are settled");
    assert_eq!(stream(&limiter, "kim", [0]).await.unwrap_err(), Failure::Failed);
    assert_eq!(used(stream_limit(&limiter, "kim", [0])).await, [0, 0, 0, 0], "a refund is all");
    drop(stream(&limiter, "admin", [7]).await.unwrap());
    assert_eq!(used(stream_limit(&limiter, "admin", [0])).await, [0, 0, 0, 0], "nothing was counted");
}

#[tokio::test]
async fn a_meter_that_is_kept_for_ever_keeps_only_its_settlement() {
    let limiter = Limiter::in_memory();
    let kept: Vec<_> = {
        let pieces = Arc::new([1]);
        let meters = stream(&limiter, "zoe", Shared(Arc::clone(&pieces))).await.unwrap();
        assert_eq!(Arc::strong_count(&pieces), 1, "the body is gone");
        meters
    };
    drop(stream(&limiter, "zoe", [2]).await.unwrap());
    assert_eq!(used(stream_limit(&limiter, "zoe", [0])).await, [2, 42, 1, 0], "the place is free");
    let left = limiter.drain(Duration::ZERO).await;
    assert_eq!((left.meters(), left.corrections(), left.leases()), (1, 0, 0));
    drop(kept);
    assert!(limiter.drain(Duration::ZERO).await.is_nothing());
}

#[derive(Clone, Copy)]
enum End {
    Panic,
    Never,
}

#[rate_limit(
    key = "{user}",
    rule(count = 100, per = "1h", unit = "tokens"),
    unit("tokens", cost = 40, settle = metered),
    limiter = limiter,
    check_fn = broken_limit
)]
async fn broken(limiter: &Limiter, user: &'static str, end: End) -> Result<(), Failure> {
    tallygate::meter("tokens").unwrap().add(7);
    match end {
        End::Panic => panic!("half way"),
        End::Never => std::future::pending().await,
    }
}

#[rate_limit(
    key = "{user}",
    rule(count = 100, per = "1h", unit = "tokens"),
    unit("tokens", cost = 40, settle = metered),
    limiter = limiter,
    check_fn = broken_at_once_limit
)]
fn broken_at_once(limiter: &Limiter, user: &str) -> Result<(), Failure> {
    tallygate::meter("tokens").unwrap().add(7);
    panic!("half way")
}

#[tokio::test]
async fn a_call_that_panics_or_is_dropped_half_way_counts_as_what_was_metered() {
    let limiter = Limiter::in_memory();
    let panicked = tokio::spawn({
        let limiter = limiter.clone();
        async move { broken(&limiter, "zoe", End::Panic).await }
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert_eq!(used(broken_limit(&limiter, "zoe", End::Panic)).await, [7]);
    assert!(broken(&limiter, "kim", End::Never).now_or_never().is_none());
    assert_eq!(used(broken_limit(&limiter, "kim", End::Never)).await, [7]);
    let caught = catch_unwind(AssertUnwindSafe(|| broken_at_once(&limiter, "zoe")));
    assert!(caught.is_err());
    assert_eq!(used(broken_at_once_limit(&limiter, "zoe")).await, [7]);
    assert!(limiter.drain(Duration::ZERO).await.is_nothing());
}

struct Shared(Arc<[u64; 1]>);

impl AsRef<[u64]> for Shared {
    fn as_ref(&self) -> &[u64] {
        &*self.0
    }
}

struct Model {
    limiter: Limiter,
}

trait Answers {
    fn count(&self, bytes: u64) -> Result<u64, Failure>;
}

impl Answers for Model {
    /// Meters bytes, and finds the meter of the call around it, too.
    #[rate_limit(
        name = "units.count",
        rule(count = 1_000, per = "1h", unit = "bytes"),
        unit("bytes", settle = metered),
        limiter = self.limiter
    )]
    fn count(&self, bytes: u64) -> Result<u64, Failure> {
        tallygate::meter("bytes").unwrap().add(bytes);
        tallygate::meter("tokens").unwrap().add(1);
        let (bytes, tokens) = (tallygate::meter("bytes").unwrap(), tallygate::meter("tokens").unwrap());
        Ok(bytes.used() + tokens.used())
    }
}

impl Model {
    #[rate_limit(
        name = "units.answer",
        rule(count = 100, per = "1h", unit = "tokens"),
        rule(count = 1_000, per = "1h", unit = "bytes"),
        unit("tokens", settle = metered),
        unit("bytes", settle = metered),
        limiter = self.limiter
    )]
    async fn answer(&self) -> Result<u64, Failure> {
        tallygate::meter("bytes").unwrap().add(500);
        tokio::task::yield_now().await;
        self.count(20)
    }

    #[rate_limit(
        name = "units.idle",
        rule(count = 100, per = "1h", unit = "tokens"),
        unit("tokens", cost = 30, settle = metered),
        limiter = self.limiter
    )]
    async fn idle(&self) -> Result<(), Failure> {
        let task = tokio::spawn(async { tallygate::meter("tokens").map(drop) }).await.unwrap();
        assert_eq!(task.unwrap_err().kind(), BackendErrorKind::Misuse);
        Ok(())
    }

    #[rate_limit(
        name = "units.outer",
        rule(count = 100, per = "1h", unit = "tokens"),
        rule(count = 100, per = "1h", unit = "bytes"),
        unit("tokens", settle = metered),
        unit("bytes", settle = metered),
        limiter = self.limiter
    )]
    async fn outer(&self) -> Result<[BackendError; 3], Failure> {
        Ok([self.settles().await?, self.pays()?, self.settles_beside_a_meter().await?])
    }

    #[rate_limit(
        name = "units.settles",
        rule(count = 100, per = "1h", unit = "tokens"),
        unit("tokens", settle = |_| 7),
        limiter = self.limiter
    )]
    async fn settles(&self) -> Result<BackendError, Failure> {
        tallygate::meter("bytes").unwrap().add(3);
        Ok(tallygate::meter("tokens").unwrap_err())
    }

    #[rate_limit(
        name = "units.pays",
        rule(count = 100, per = "1h", unit = "tokens"),
        unit("tokens", cost = 5),
        limiter = self.limiter
    )]
    fn pays(&self) -> Result<BackendError, Failure> {
        tallygate::meter("bytes").unwrap().add(4);
        Ok(tallygate::meter("tokens").unwrap_err())
    }

    #[rate_limit(
        name = "units.beside",
        rule(count = 100, per = "1h", unit = "tokens"),
        rule(count = 100, per = "1h", unit = "bytes"),
        unit("bytes", settle = metered),
        unit("tokens", settle = |_| 2),
        limiter = self.limiter
    )]
    async fn settles_beside_a_meter(&self) -> Result<BackendError, Failure> {
        tallygate::meter("bytes").unwrap().add(50);
        Ok(tallygate::meter("tokens").unwrap_err())
    }

    async fn used(&self, name: &str) -> Vec<u64> {
        let policy = Limiter::policy(name).unwrap();
        used(self.limiter.check(&policy, &Subject::everyone())).await
    }
}

#[tokio::test]
async fn a_meter_is_that_of_the_innermost_call_that_declares_its_unit() {
    let model = Model { limiter: Limiter::in_memory() };
    assert_eq!(model.answer().await, Ok(20 + 1));
    assert_eq!(model.used("units.answer").await, [1, 500]);
    assert_eq!(model.used("units.count").await, [20]);
}

#[tokio::test]
async fn within_a_call_that_does_not_meter_its_unit_there_is_no_meter_of_a_call_around_it() {
    let model = Model { limiter: Limiter::in_memory() };
    for error in model.outer().await.unwrap() {
        assert_eq!(error.kind(), BackendErrorKind::Misuse);
        let text = "the innermost limited function with `unit(\"tokens\", …)` does not meter it; write `settle = metered` there";
        assert!(error.to_string().contains(text), "{error}");
    }
    assert_eq!(model.used("units.outer").await, [0, 3 + 4]);
    assert_eq!(model.used("units.settles").await, [7]);
    assert_eq!(model.used("units.pays").await, [5]);
    assert_eq!(model.used("units.beside").await, [2, 50]);
}

#[tokio::test]
async fn a_call_that_asks_for_no_meter_counts_as_its_cost() {
    let model = Model { limiter: Limiter::in_memory() };
    model.idle().await.unwrap();
    assert_eq!(model.used("units.idle").await, [30]);
}

#[test]
fn outside_of_a_call_that_meters_the_unit_there_is_no_meter() {
    let error = tallygate::meter("tokens").unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::Misuse);
    assert!(error.to_string().contains("write `unit(\"tokens\", settle = metered)` in its attribute"), "{error}");
}

static CHAT: LazyLock<Policy> = LazyLock::new(|| {
    let tokens = Rule::sliding_window(100, HOUR).counting("tokens");
    Policy::builder("units.built").rule(Rule::sliding_window(4, HOUR)).rule(tokens).build().unwrap()
});

#[rate_limit(policy = CHAT, key = "{user}", unit("token", settle = metered), limiter = limiter)]
async fn misspelt(limiter: &Limiter, user: &str) -> Result<Result<Meter, BackendError>, Failure> {
    let _ = (limiter, user);
    Ok(tallygate::meter("token"))
}

#[tokio::test]
async fn a_meter_of_a_unit_that_the_policy_does_not_have_is_a_mistake() {
    let error = misspelt(&Limiter::in_memory(), "zoe").await.unwrap().unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::Misuse);
    let expected = "no rule of policy `units.built` counts the unit `token`; its rules count `calls` and `tokens`";
    assert_eq!(error.to_string(), expected);
}
