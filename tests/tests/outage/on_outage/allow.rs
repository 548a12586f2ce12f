//! `allow`: calls are admitted and not counted while Redis is away.

use tallygate::{BackendErrorKind, DecidedBy, OnOutage};
use tallygate_harness::fake::Fake;

use super::{HOUR, admitted, builder, check, denied, hourly, limiter, patient, policy, subject, with_server};

#[tokio::test]
async fn every_call_is_admitted_and_none_is_counted() {
    let (limiter, policy) = (limiter(OnOutage::Allow), policy(hourly(1)));
    for _ in 0..100 {
        assert_eq!(admitted(&limiter, &policy).await.decided_by(), DecidedBy::Nobody);
    }
    let counting = builder(hourly(1)).on_outage(OnOutage::Local).build().unwrap();
    assert_eq!(admitted(&limiter, &counting).await.decided_by(), DecidedBy::Standby);
}

/// A call that does not say its cost in a unit may use some of it afterwards.
#[tokio::test]
async fn a_count_of_nothing_denies_calls_that_may_use_any_of_its_unit() {
    let limiter = limiter(OnOutage::Allow);
    let policy = builder(hourly(1)).rule(hourly(9).counting("tokens")).build().unwrap().with_counts([1, 0]);
    let call = || check(&limiter, &policy);
    for check in [call(), call().cost_of("tokens", 1)] {
        let denial = check.await.unwrap().into_result().unwrap_err();
        assert_eq!((denial.decided_by(), denial.retry_after()), (DecidedBy::Nobody, None));
    }
    assert!(call().cost_of("tokens", 0).await.unwrap().is_allowed());
}

#[tokio::test]
async fn options_of_a_call_change_nothing() {
    let (limiter, policy) = (limiter(OnOutage::Allow), policy(hourly(1)));
    let call = || check(&limiter, &policy);
    let reported = call().report().await.unwrap();
    assert!(reported.is_allowed() && reported.report().is_empty());
    assert!(call().peek().await.unwrap().is_allowed() && call().wait(HOUR).await.unwrap().is_allowed());
    assert!(call().cost(1_000).await.unwrap().is_allowed());
    let permit = call().refundable().await.unwrap().into_result().unwrap();
    assert!(!permit.refund().await.unwrap(), "nothing was counted");
    let permit = call().cost(5).refundable().await.unwrap().into_result().unwrap();
    assert!(!permit.settle(9).await.unwrap(), "nothing was reserved");
    let permit = call().cost(5).await.unwrap().into_result().unwrap();
    assert!(permit.settle(9).await.unwrap_err().to_string().contains("cannot be refunded"));
}

#[tokio::test]
async fn a_limit_that_is_closed_stays_closed() {
    let (limiter, policy) = (limiter(OnOutage::Allow), policy(hourly(1)));
    assert_eq!(denied(&limiter, &policy.with_counts([0])).await.retry_after(), None);
    let (mut server, limiter) = with_server(OnOutage::Allow);
    limiter.override_policy("on.outage").rules([hourly(0)]).allow_unknown().set().await.unwrap();
    server.kill();
    for _ in 0..3 {
        assert_eq!(denied(&limiter, &policy).await.retry_after(), None);
    }
}

#[tokio::test]
async fn a_call_that_lacks_a_subject_is_a_mistake() {
    let limiter = limiter(OnOutage::Allow);
    let policy = builder(hourly(1)).rule_on("network", hourly(1)).build().unwrap();
    let error = check(&limiter, &policy).await.unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::Misuse);
}

#[tokio::test]
async fn without_a_runtime_nothing_is_admitted_whether_the_outage_is_known_or_not() {
    use futures_util::FutureExt as _;
    for on_outage in [OnOutage::Allow, OnOutage::Local] {
        for is_known in [false, true] {
            let (limiter, policy) = (limiter(on_outage), policy(hourly(1_000)));
            if is_known {
                assert_ne!(admitted(&limiter, &policy).await.decided_by(), DecidedBy::Backend);
            }
            let decided = std::thread::spawn(move || {
                let decide = || check(&limiter, &policy).into_future().now_or_never().unwrap().map(drop);
                (0..100).map(|_| decide()).collect::<Vec<_>>()
            });
            for decided in decided.join().unwrap() {
                assert_eq!(decided.unwrap_err().kind(), BackendErrorKind::Misuse, "{on_outage:?}, known: {is_known}");
            }
        }
    }
}

#[tokio::test]
async fn a_mistake_that_is_found_when_connecting_admits_nothing_however_often_it_is_asked() {
    let fake = Fake::start().await;
    fake.greet_with("WRONGPASS invalid username-password pair or user is disabled.");
    for on_outage in [OnOutage::Allow, OnOutage::Local] {
        let limiter = patient().on_outage(on_outage).connect_lazy(fake.url()).unwrap();
        for _ in 0..100 {
            let error = limiter.check(&policy(hourly(1)), subject()).await.unwrap_err();
            assert_eq!(error.kind(), BackendErrorKind::Wrong);
        }
    }
}
