//! Pauses while Redis is away: the process that was told honours them, and tells Redis when it is back.

use futures_util::FutureExt as _;
use tallygate::{BackendErrorKind, Limiter, OnOutage, Policy, RejectionKind, Rule};
use tallygate_harness::server::patient;

use super::{
    DecidedBy, Duration, PATIENCE, Server, admitted, builder, call, check, denied, hourly, room, sleep, subject,
    timeout, until_decided_by,
};

const MINUTE: Duration = Duration::from_secs(60);

fn pausable() -> Policy {
    builder(hourly(2)).pausable().build().unwrap()
}

/// A limiter that doubts each answer at once.
fn doubting(server: &Server, on_outage: OnOutage) -> Limiter {
    patient().on_outage(on_outage).denial_cache(Duration::ZERO).connect_lazy(server.url()).unwrap()
}

fn refuse(server: &Server, is_refused: bool) {
    server.ask::<()>(&format!("CONFIG SET maxmemory {}", u8::from(is_refused)));
}

async fn assert_paused(limiter: &Limiter, policy: &Policy) {
    assert_eq!(denied(limiter, policy).await.kind(), RejectionKind::Paused);
}

#[tokio::test]
async fn a_pause_of_which_redis_cannot_be_asked_holds_under_each_setting_and_charges_nothing() {
    for on_outage in [OnOutage::Local, OnOutage::Allow, OnOutage::Deny] {
        let mut server = Server::start();
        let (limiter, policy) = (doubting(&server, on_outage), pausable());
        admitted(&limiter, &policy).await;
        check(&limiter, &policy).pause(MINUTE).await.unwrap();
        server.kill();
        for _ in 0..5 {
            assert_paused(&limiter, &policy).await;
        }
        if on_outage == OnOutage::Local {
            until_decided_by(&limiter, DecidedBy::Standby).await;
            assert_paused(&limiter, &policy).await;
            let reported = check(&limiter, &policy).report().await.unwrap();
            assert_eq!(reported.report()[0].remaining(), 2, "no call was charged here");
            let error = check(&limiter, &policy).resume().await.unwrap_err();
            assert_eq!(error.kind(), BackendErrorKind::Away);
            assert_eq!(room(&limiter, &policy).await, 2);
        }
    }
}

#[tokio::test]
async fn a_pause_that_could_not_be_stored_is_not_shortened_by_one_that_is() {
    let server = Server::start();
    let (limiter, other, policy) = (doubting(&server, OnOutage::Local), doubting(&server, OnOutage::Local), pausable());
    refuse(&server, true);
    check(&limiter, &policy).pause(10 * MINUTE).await.unwrap_err();
    refuse(&server, false);
    check(&limiter, &policy).pause(MINUTE).await.unwrap();
    for limiter in [&limiter, &other] {
        let denial = denied(limiter, &policy).await;
        assert!(denial.retry_after().unwrap() > 9 * MINUTE, "{denial:?}");
    }
}

#[tokio::test]
async fn a_longer_pause_that_could_not_be_stored_is_the_one_that_holds_here() {
    let server = Server::start();
    let (limiter, other, policy) = (doubting(&server, OnOutage::Local), doubting(&server, OnOutage::Local), pausable());
    refuse(&server, true);
    check(&limiter, &policy).pause(10 * MINUTE).await.unwrap_err();
    refuse(&server, false);
    check(&other, &policy).pause(MINUTE).await.unwrap();
    let left = check(&limiter, &policy).pause_status().await.unwrap().unwrap().left();
    assert!(left > 9 * MINUTE, "{left:?}");
}

#[tokio::test]
async fn a_call_that_awaits_redis_while_its_subject_is_paused_is_denied_and_not_counted() {
    let server = Server::start();
    let (limiter, policy) = (patient().connect(server.url()).await.unwrap(), pausable());
    admitted(&limiter, &policy).await;
    server.pause();
    let (decision, paused, ()) = tokio::join!(
        biased;
        call(&limiter, &policy),
        check(&limiter, &policy).pause(MINUTE),
        async { server.resume() },
    );
    paused.unwrap();
    assert_eq!(decision.into_result().unwrap_err().kind(), RejectionKind::Paused);
    check(&limiter, &policy).resume().await.unwrap();
    let put_back = async {
        while check(&limiter, &policy).peek().report().await.unwrap().report()[0].remaining() < 1 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, put_back).await.expect("the call is not counted");
}

#[tokio::test]
async fn a_pause_that_could_not_be_stored_is_stored_when_redis_is_back_and_can_then_be_ended_elsewhere() {
    let server = Server::start();
    let (limiter, other, policy) = (doubting(&server, OnOutage::Local), doubting(&server, OnOutage::Local), pausable());
    refuse(&server, true);
    check(&limiter, &policy).pause(10 * MINUTE).await.unwrap_err();
    refuse(&server, false);
    let stored = async {
        while other.peek(&policy, subject()).await.unwrap().is_allowed() {
            assert_paused(&limiter, &policy).await;
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, stored).await.expect("it is stored");
    assert_paused(&other, &policy).await;
    check(&other, &policy).resume().await.unwrap();
    let ended = async {
        while !call(&limiter, &policy).await.is_allowed() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, ended).await.expect("the end is heard");
}

#[tokio::test]
async fn a_pause_that_could_not_be_stored_is_stored_by_a_limiter_that_is_drained() {
    let server = Server::start();
    let (limiter, other, policy) = (doubting(&server, OnOutage::Local), doubting(&server, OnOutage::Local), pausable());
    refuse(&server, true);
    check(&limiter, &policy).pause(10 * MINUTE).await.unwrap_err();
    // Whoever used the policy may be gone before the limiter is drained.
    drop(policy);
    assert_eq!(limiter.drain(PATIENCE).await.failed_corrections(), 1);
    refuse(&server, false);
    assert!(limiter.drain(PATIENCE).await.is_nothing());
    assert_paused(&other, &pausable()).await;
}

#[tokio::test]
async fn a_pause_that_could_not_be_stored_is_stored_by_a_drain_that_a_running_call_outlasts() {
    let server = Server::start();
    let (limiter, other, policy) = (doubting(&server, OnOutage::Local), doubting(&server, OnOutage::Local), pausable());
    let concurrent = Policy::builder("outage-concurrent").rule(Rule::concurrency(1, MINUTE)).build().unwrap();
    let running = limiter.check(&concurrent, subject()).await.unwrap().into_result().unwrap();
    refuse(&server, true);
    check(&limiter, &policy).pause(10 * MINUTE).await.unwrap_err();
    refuse(&server, false);
    let told = async {
        tokio::select! {
            left = limiter.drain(PATIENCE) => panic!("the call runs: {left}"),
            () = async {
                while other.peek(&policy, subject()).await.unwrap().is_allowed() {
                    sleep(Duration::from_millis(20)).await;
                }
            } => {}
        }
    };
    timeout(PATIENCE, told).await.expect("it is stored");
    drop(running);
}

#[tokio::test]
async fn a_pause_that_the_call_after_one_has_begun_is_stored_although_its_caller_is_dropped() {
    let server = Server::start();
    let connect = async || patient().denial_cache(Duration::ZERO).connect(server.url()).await.unwrap();
    let (limiter, other, policy) = (connect().await, connect().await, pausable());
    check(&limiter, &policy).pause(Duration::from_secs(2)).await.unwrap();
    let permit =
        check(&limiter, &policy).wait(MINUTE).await.unwrap().into_result().expect("it is tried after the pause");
    // The server does not know the script any more, so to store a pause takes a second trip.
    server.ask::<()>("SCRIPT FLUSH");
    assert!(permit.pause(10 * MINUTE).now_or_never().is_none());
    drop(permit);
    let heard = async {
        while call(&other, &policy).await.into_result().err().and_then(|denial| denial.retry_after()) < Some(9 * MINUTE)
        {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, heard).await.expect("others hear of it");
}
