//! A policy may be built elsewhere, and shared.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tallygate::{Ban, Limiter, Policy, Rejection, RejectionKind, Rule, Subject, rate_limit};

use crate::grammar::{Runs, denial};

const HOUR: Duration = Duration::from_secs(3600);

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let ban = Ban::new(2, HOUR, HOUR);
    Policy::builder("shared").rule(Rule::sliding_window(3, HOUR)).ban(ban).build().unwrap()
});

#[rate_limit(policy = POLICY, key = "{user}", message = "{user}: {@count} per {@per}", limiter = limiter)]
async fn one(user: &str, limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

#[rate_limit(policy = *POLICY, key = "{user}", cost = 2, limiter = limiter)]
async fn other(user: &str, limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn functions_of_one_policy_share_its_tallies() {
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    one("a", &limiter, &runs).await.unwrap();
    other("a", &limiter).await.unwrap();
    let rejection = denial(one("a", &limiter, &runs).await);
    assert_eq!((rejection.policy(), rejection.to_string().as_str()), ("shared", "a: 3 per 1h"));
    assert!(!limiter.peek(&POLICY, &Subject::of("a")).await.unwrap().is_allowed());
    denial(other("a", &limiter).await);
    assert_eq!(denial(one("a", &limiter, &runs).await).kind(), RejectionKind::Banned);
    assert_eq!((one("b", &limiter, &runs).await.unwrap(), runs.0.get()), (2, 2));
}

struct Service {
    policy: Arc<Policy>,
    limiter: Limiter,
}

impl Service {
    #[rate_limit(policy = self.policy, limiter = self.limiter, refund_if = Option::is_none, reject = |_| Some(false))]
    async fn call(&self, given: bool) -> Option<bool> {
        given.then_some(true)
    }

    #[rate_limit(policy = self.policy.with_counts([calls]), limiter = self.limiter)]
    fn boxed(&self, calls: u64) -> std::pin::Pin<Box<dyn Future<Output = Result<(), Rejection>> + Send + '_>> {
        Box::pin(async move { Ok(()) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_may_be_of_an_argument() {
    let policy = Policy::builder("own").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    let service = Service { policy: Arc::new(policy), limiter: Limiter::in_memory() };
    let answers = [service.call(false).await, service.call(true).await, service.call(true).await];
    assert_eq!(answers, [None, Some(true), Some(false)]);
    service.boxed(2).await.unwrap();
    denial(service.boxed(2).await);
}

/// The policy of the attribute that is written first, `inner`, decides last.
#[rate_limit(policy = *inner, refund_if = Result::is_err, limiter = limiter)]
#[rate_limit(policy = *outer, refund_if = Result::is_err, message = "not now, by {@rule}", limiter = limiter)]
async fn twice(inner: &Policy, outer: &Policy, limiter: &Limiter) -> Result<u8, Rejection> {
    let _ = limiter;
    Ok(1)
}

#[tokio::test(start_paused = true)]
async fn two_policies_of_one_function_are_decided_one_after_the_other() {
    let policy = |name: &'static str, count| {
        Policy::builder(name).rule(Rule::sliding_window(count, HOUR).named(name)).build().unwrap()
    };
    let (inner, outer, limiter) = (policy("inner", 2), policy("outer", 3), Limiter::in_memory());
    for _ in 0..2 {
        assert_eq!(twice(&inner, &outer, &limiter).await.unwrap(), 1);
    }
    // What the inner one rejects is given back to the outer one.
    for _ in 0..5 {
        assert_eq!(denial(twice(&inner, &outer, &limiter).await).policy(), "inner");
    }
}

#[rate_limit(policy = policy, limiter = limiter)]
async fn without_subjects(policy: &Policy, limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

/// A policy with a rule on a subject beside the main one.
fn two_subjects() -> Policy {
    let rule = Rule::sliding_window(1, HOUR);
    Policy::builder("p").rule(rule).rule_on("network", Rule::sliding_window(2, HOUR)).build().unwrap()
}

/// Returns why a call could not be decided.
fn why_undecided<T: std::fmt::Debug>(result: Result<T, Rejection>) -> String {
    let rejection = result.unwrap_err();
    assert_eq!(rejection.kind(), RejectionKind::Unavailable);
    std::error::Error::source(&rejection).unwrap().to_string()
}

#[tokio::test]
async fn a_policy_with_other_subjects_is_not_decided_without_them() {
    let limiter = Limiter::in_memory();
    let runs = Runs::default();
    let why = why_undecided(without_subjects(&two_subjects(), &limiter, &runs).await);
    assert_eq!(why, "policy `p` has rules on a subject `network`, which the call left out");
    assert_eq!(runs.0.get(), 0);
}

#[rate_limit(policy = policy, key = "{phone}", subject("network", "{ip:subnet}"), limiter = limiter)]
async fn with_a_subject(
    policy: &Policy,
    phone: &str,
    ip: IpAddr,
    limiter: &Limiter,
    runs: &Runs,
) -> Result<u32, Rejection> {
    Ok(runs.count())
}

#[tokio::test(start_paused = true)]
async fn a_function_gives_the_other_subjects_of_its_policy() {
    let policy = two_subjects();
    let limiter = Limiter::in_memory();
    let runs = Runs::default();
    let here = IpAddr::from([10, 0, 0, 1]);
    with_a_subject(&policy, "1", here, &limiter, &runs).await.unwrap();
    assert_eq!(denial(with_a_subject(&policy, "1", here, &limiter, &runs).await).rule().unwrap().position(), 0);
    with_a_subject(&policy, "2", here, &limiter, &runs).await.unwrap();
    assert_eq!(denial(with_a_subject(&policy, "3", here, &limiter, &runs).await).rule().unwrap().position(), 1);
    assert_eq!(with_a_subject(&policy, "3", IpAddr::from([10, 0, 0, 2]), &limiter, &runs).await.unwrap(), 3);
}

#[tokio::test]
async fn a_subject_that_the_policy_lacks_is_reported_by_its_label() {
    let policy = Policy::builder("p").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    let limiter = Limiter::in_memory();
    let runs = Runs::default();
    let here = IpAddr::from([10, 0, 0, 1]);
    let why = why_undecided(with_a_subject(&policy, "1", here, &limiter, &runs).await);
    assert_eq!(why, "policy `p` has no rule on a subject `network`");
    assert_eq!(runs.0.get(), 0);
}

struct Tenant {
    name: String,
    limiter: Limiter,
}

impl Tenant {
    #[rate_limit(
        policy = *policy,
        subject("phone", "{phone}"),
        subject("tenant", "{self.name}"),
        limiter = self.limiter,
        skip_if = phone.is_empty()
    )]
    fn call<'a>(
        &'a self,
        policy: &'a Policy,
        phone: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<(), Rejection>> + Send + 'a>> {
        Box::pin(async move { Ok(()) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_may_have_no_rule_on_the_main_subject() {
    let rule = |count| Rule::sliding_window(count, HOUR);
    let policy = Policy::builder("p").rule_on("tenant", rule(2)).rule_on("phone", rule(1)).build().unwrap();
    let tenant = Tenant { name: "acme".to_owned(), limiter: Limiter::in_memory() };
    tenant.call(&policy, "1").await.unwrap();
    assert_eq!(denial(tenant.call(&policy, "1").await).rule().unwrap().position(), 1);
    tenant.call(&policy, "").await.unwrap();
    tenant.call(&policy, "2").await.unwrap();
    assert_eq!(denial(tenant.call(&policy, "3").await).rule().unwrap().position(), 0);
}
