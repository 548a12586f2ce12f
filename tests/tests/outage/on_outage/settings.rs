//! The settings: of a limiter, of a policy, and of the attribute.

use std::time::{Duration, Instant};

use tallygate::{BackendErrorKind, DecidedBy, Limiter, OnOutage, Policy, Rejection, RejectionKind, Rule, rate_limit};
use tallygate_harness::fake::Fake;

use super::{HOUR, builder, call, check, hourly, limiter, patient, policy, subject};

#[tokio::test]
async fn without_any_setting_an_outage_rejects_every_call() {
    let limiter = patient().connect_lazy("redis://127.0.0.1:1/").unwrap();
    let error = limiter.check(&policy(hourly(1)), subject()).await.unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::Away);
}

#[tokio::test]
async fn the_setting_of_a_policy_precedes_that_of_its_limiter() {
    for of_limiter in OnOutage::ALL {
        let limiter = limiter(of_limiter);
        for (of_policy, expected) in [
            (OnOutage::Deny, None),
            (OnOutage::Local, Some(DecidedBy::Standby)),
            (OnOutage::Allow, Some(DecidedBy::Nobody)),
        ] {
            let policy = builder(hourly(1_000)).on_outage(of_policy).build().unwrap();
            for policy in [policy.with_counts([2_000]), policy] {
                let decided = check(&limiter, &policy).await;
                assert_eq!(decided.ok().map(|decision| decision.decided_by()), expected, "{of_limiter}, {of_policy}");
            }
        }
    }
}

#[tokio::test]
async fn the_attribute_sets_what_becomes_of_the_calls_of_a_function() {
    #[rate_limit(key = "s", limiter = limiter, rule(count = 1, per = "1h"), on_outage = "local")]
    async fn by_standby(limiter: &Limiter) -> Result<(), Rejection> {
        Ok(())
    }
    #[rate_limit(key = "s", limiter = limiter, rule(count = 1, per = "1h"), on_outage = "allow", refund_if = Result::is_ok)]
    async fn by_nobody(limiter: &Limiter) -> Result<(), Rejection> {
        Ok(())
    }
    #[rate_limit(key = "s", limiter = limiter, rule(count = 1, per = "1h"), on_outage = "deny")]
    async fn rejected(limiter: &Limiter) -> Result<(), Rejection> {
        Ok(())
    }
    let limiter = limiter(OnOutage::Allow);
    by_standby(&limiter).await.unwrap();
    let rejection = by_standby(&limiter).await.unwrap_err();
    assert_eq!(rejection.kind(), RejectionKind::Limited);
    assert_eq!(rejection.denial().unwrap().decided_by(), DecidedBy::Standby);
    for _ in 0..3 {
        by_nobody(&limiter).await.unwrap();
        assert_eq!(rejected(&limiter).await.unwrap_err().kind(), RejectionKind::Unavailable);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_has_a_deadline_of_its_own() {
    #[rate_limit(
        key = "s",
        limiter = limiter,
        rule(count = 1_000, per = "1h"),
        deadline = "30ms"
    )]
    async fn limited(limiter: &Limiter) -> Result<(), Rejection> {
        Ok(())
    }
    let fake = Fake::start().await;
    // Half a minute.
    let limiter = patient().connect_lazy(fake.url()).unwrap();
    let begun = Instant::now();
    assert_eq!(limited(&limiter).await.unwrap_err().kind(), RejectionKind::Unavailable);
    let impatient = builder(hourly(1)).deadline(Duration::from_millis(30)).build().unwrap();
    limiter.check(&impatient, subject()).await.unwrap_err();
    limiter.check(&impatient, subject()).reset().await.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_setting_that_cannot_be_used_is_refused() {
    for deadline in [Duration::ZERO, HOUR + Duration::from_nanos(1)] {
        let error = builder(hourly(1)).deadline(deadline).build().unwrap_err();
        assert!(error.to_string().starts_with("policy `on.outage`: `deadline` "), "{error}");
        assert_eq!(error.rule_errors().len(), 1);
    }
    let error = Limiter::builder().processes(0).connect_lazy("redis://127.0.0.1/").unwrap_err();
    assert_eq!(error.to_string(), "`processes` must be at least 1, like `processes(4)`");
}

#[tokio::test]
async fn policies_that_differ_in_their_settings_alone_are_not_equal() {
    let set = builder(hourly(1)).on_outage(OnOutage::Allow).deadline(HOUR).build().unwrap();
    assert_eq!((set.on_outage(), set.deadline()), (Some(OnOutage::Allow), Some(HOUR)));
    assert_ne!(set, policy(hourly(1)));
    assert_eq!((policy(hourly(1)).on_outage(), policy(hourly(1)).deadline()), (None, None));
}

#[tokio::test]
async fn in_memory_there_is_no_outage() {
    let limiter = Limiter::builder().on_outage(OnOutage::Local).processes(4).build_in_memory().unwrap();
    let policy = Policy::builder("p").rule(Rule::sliding_window(4, HOUR)).on_outage(OnOutage::Allow).build().unwrap();
    for _ in 0..4 {
        assert_eq!(call(&limiter, &policy).await.decided_by(), DecidedBy::Backend);
    }
    assert!(!call(&limiter, &policy).await.is_allowed());
}
