//! A function may have a companion, which returns the check of a call.

use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use tallygate::{Check, Decision, Limiter, LimitingRule, Policy, Rejection, RejectionKind, Rule, rate_limit};
use tokio::time::advance;

use crate::assert_limited;

const HOUR: Duration = Duration::from_secs(3600);

/// Calls a function until it is rejected. Before each call, a peek through the companion has to tell what the function then
/// does, and has to count nothing. Returns the number of admitted calls.
async fn assert_agreement<T>(check: impl Fn() -> Check<'static>, call: impl AsyncFn() -> Result<T, Rejection>) -> u32 {
    let mut admitted = 0;
    loop {
        let expected = check().peek().report().await.unwrap();
        let again = check().peek().report().await.unwrap();
        assert_eq!(remaining(&expected), remaining(&again));
        let Err(rejection) = call().await else {
            assert!(expected.is_allowed());
            admitted += 1;
            continue;
        };
        let Decision::Denied(denial) = &expected else { panic!("{expected:?}") };
        let position = |rule: Option<LimitingRule<'_>>| rule.map(|rule| (rule.position(), rule.count()));
        assert_eq!(denial.policy().name(), rejection.policy());
        assert_eq!(position(denial.rule()), position(rejection.rule()));
        assert_eq!(denial.kind(), rejection.kind());
        assert_eq!(denial.retry_after(), rejection.retry_after());
        assert_eq!(denial.to_string(), rejection.to_string());
        assert_eq!(Rejection::from(denial.clone()).message(), rejection.message());
        return admitted;
    }
}

/// Returns how many calls each rule still admits.
fn remaining(decision: &Decision) -> Vec<u64> {
    decision.report().iter().map(tallygate::RuleStatus::remaining).collect()
}

struct Json<T>(T);

#[derive(Clone)]
struct Order {
    id: u32,
    items: Vec<u8>,
}

#[rate_limit(
    key = "{user:lower:hash}",
    rule(count = calls, per = "1h"),
    rule(count = 9, per = "1h", key = "all", message = "all of you: {@count} are enough"),
    prevent_duplicate(key = "{order.id}"),
    cost = order.items.len() as u64,
    message = "not now, {user}, but in {@retry_after}",
    wait = "1ms",
    skip_if = user.is_empty(),
    refund_if = Result::is_err,
    limiter = limiter,
    check_fn = place_limit
)]
async fn place(
    user: &str,
    Json(mut order): Json<Order>,
    calls: u64,
    mut unused: u8,
    limiter: &Limiter,
) -> Result<u8, Rejection> {
    order.items.push(0);
    unused += 1;
    Ok(unused)
}

#[tokio::test(start_paused = true)]
async fn a_peek_through_the_companion_agrees_with_the_function() {
    let limiter = Limiter::in_memory();
    // The rule on all calls leaves two to the second user, and the third user's count admits no call of that cost.
    for (user, calls, admitted) in [("a", 4, 2), ("b", 100, 2), ("c", 1, 0)] {
        let order = |id| Json(Order { id, items: vec![0; 2] });
        let mut ran = 0;
        for id in 0..5 {
            let check = || place_limit(user, order(id), calls, 0, &limiter);
            let call = async || {
                let answer = place(user, order(id), calls, 0, &limiter).await;
                advance(Duration::from_secs(id.into())).await;
                answer
            };
            ran += assert_agreement(check, call).await;
        }
        assert_eq!(ran, admitted);
    }
}

#[rate_limit(rule(count = 2, per = "1h"), ban(denials = 100, within = "1h", duration = "1h"), check_fn = draw_limit)]
async fn draw() -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_companion_administers_the_limits_of_its_function() {
    assert_eq!(assert_agreement(draw_limit, draw).await, 2);
    draw_limit().reset().await.unwrap();
    assert_eq!(assert_agreement(draw_limit, draw).await, 2);
    draw_limit().ban(HOUR).await.unwrap();
    assert_eq!(draw().await.unwrap_err().kind(), RejectionKind::Banned);
    draw_limit().unban().await.unwrap();
    assert_limited(draw().await);
    draw_limit().reset().await.unwrap();
    assert!(draw_limit().await.unwrap().is_allowed());
    assert_eq!(assert_agreement(draw_limit, draw).await, 1);
}

struct Tenant<T> {
    name: T,
    limiter: Limiter,
    policy: Policy,
}

impl<T: AsRef<str> + Send + Sync> Tenant<T> {
    fn new(name: T) -> Self {
        let builder = Policy::builder("companions").rule(Rule::sliding_window(3, HOUR));
        let policy = builder.rule_on("network", Rule::sliding_window(2, HOUR)).build().unwrap();
        Self { name, limiter: Limiter::in_memory(), policy }
    }

    #[rate_limit(key = "{self.name.as_ref()}", rule(count = 2, per = "1h"), limiter = self.limiter, check_fn = open_limit)]
    async fn open<U>(&mut self, _page: U) -> Result<(), Rejection>
    where
        U: Send,
    {
        Ok(())
    }

    #[rate_limit(rule(count = 1, per = "1h"), limiter = self.limiter, check_fn = close_limit)]
    async fn close(mut self) -> Result<Self, Rejection> {
        self.policy = self.policy.with_counts([1]);
        Ok(self)
    }

    #[rate_limit(
        policy = self.policy.with_counts([calls]),
        key = "{self.name.as_ref()}",
        subject("network", "{network}"),
        limiter = self.limiter,
        check_fn = boxed_limit
    )]
    fn boxed<'a>(
        &'a self,
        calls: u64,
        network: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<&'a str, Rejection>> + Send + 'a>> {
        let network = network.trim();
        Box::pin(async move { Ok(network) })
    }
}

#[tokio::test(start_paused = true)]
async fn methods_of_every_kind_have_companions() {
    let mut tenant = Tenant::new("acme".to_owned());
    assert!(tenant.open_limit(1).peek().await.unwrap().is_allowed());
    tenant.open(1).await.unwrap();
    tenant.open("b").await.unwrap();
    assert!(!tenant.open_limit("c").peek().await.unwrap().is_allowed());
    assert_limited(tenant.open(1).await);

    assert_eq!(assert_agreement(|| tenant.boxed_limit(1, "a"), async || tenant.boxed(1, "a").await).await, 1);
    assert_eq!(assert_agreement(|| tenant.boxed_limit(9, "a"), async || tenant.boxed(9, "a").await).await, 1);
    assert_eq!(assert_agreement(|| tenant.boxed_limit(9, "b"), async || tenant.boxed(9, "b").await).await, 2);

    let copy = Tenant { limiter: tenant.limiter.clone(), ..Tenant::new("acme".to_owned()) };
    let tenant = tenant.close().await.unwrap();
    assert!(!tenant.close_limit().peek().await.unwrap().is_allowed());
    assert_limited(copy.close().await.map(drop));
}

#[async_trait]
trait Shop: Send {
    fn name(&self) -> String;

    #[rate_limit(key = "{self.name()}:{id}", rule(count = 2, per = "1h"), check_fn = sell_limit)]
    async fn sell(&mut self, mut count: u32, (id, _): (u32, u32)) -> Result<u32, Rejection> {
        count += id;
        Ok(count)
    }
}

trait Later {
    #[rate_limit(rule(count = 2, per = "1h"), check_fn = later_limit)]
    async fn later(&self) -> Result<(), Rejection> {
        Ok(())
    }

    /// An implementation may write the check of its own method by `check_fn`.
    fn own_limit(&self) -> Check<'static>;

    fn own(&self) -> impl Future<Output = Result<(), Rejection>> + Send;
}

struct Corner;

#[async_trait]
impl Shop for Corner {
    fn name(&self) -> String {
        "corner".to_owned()
    }
}

impl Later for Corner {
    #[rate_limit(rule(count = 2, per = "1h"), check_fn = own_limit)]
    async fn own(&self) -> Result<(), Rejection> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn provided_methods_of_traits_have_companions() {
    let sell = async || Corner.sell(1, (2, 3)).await;
    assert_eq!(assert_agreement(|| Corner.sell_limit(1, (2, 3)), sell).await, 2);
    assert_eq!(assert_agreement(|| Corner.later_limit(), async || Corner.later().await).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_trait_may_declare_the_companions_of_its_implementations() {
    assert_eq!(assert_agreement(|| Corner.own_limit(), async || Corner.own().await).await, 2);
}

mod r#type {
    use super::{Rejection, rate_limit};

    #[rate_limit(rule(count = 2, per = "1h"), check_fn = r#enum)]
    pub(super) async fn r#struct() -> Result<(), Rejection> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn names_may_be_raw_identifiers() {
    assert_eq!(assert_agreement(r#type::r#enum, r#type::r#struct).await, 2);
}

#[rate_limit(rule(count = 5, per = "1h"), name = "companions.inner", check_fn = inner_limit)]
#[rate_limit(rule(count = 2, per = "1h"), name = "companions.outer", check_fn = outer_limit)]
async fn twice() -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn each_attribute_of_a_function_may_name_a_companion() {
    assert_eq!(assert_agreement(outer_limit, twice).await, 2);
    assert!(inner_limit().peek().await.unwrap().is_allowed());
}

static POLICY: LazyLock<Policy> =
    LazyLock::new(|| Policy::builder("companions.shared").rule(Rule::sliding_window(1, HOUR)).build().unwrap());

#[rate_limit(policy = POLICY, subject("network", "{network}"), check_fn = unknown_limit)]
async fn unknown(network: u8) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test]
async fn a_check_that_cannot_be_decided_is_an_error() {
    let error = unknown_limit(1).await.unwrap_err();
    assert_eq!(error.to_string(), "policy `companions.shared` has no rule on a subject `network`");
    assert_eq!(unknown(1).await.unwrap_err().kind(), RejectionKind::Unavailable);
}

#[rate_limit(rule(count = 2, per = "1h"), shadow, reject = drop, check_fn = shadowed_limit)]
async fn shadowed() {}

#[tokio::test(start_paused = true)]
async fn a_companion_tells_what_a_function_in_shadow_would_reject() {
    shadowed().await;
    assert!(shadowed_limit().peek().await.unwrap().is_allowed());
    shadowed().await;
    assert!(!shadowed_limit().peek().await.unwrap().is_allowed());
    shadowed().await;
}
