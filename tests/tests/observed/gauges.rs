//! The gauges of one policy.

use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tallygate::{DecidedBy, Limiter, Policy, Rule, Subject};
use tallygate_harness::server::{Server, away};
use tallygate_harness::until::until_found;
use tokio::time::timeout;

const HOUR: Duration = Duration::from_secs(3_600);

/// The labels of a gauge, and how much it has changed since the snapshot before; `None` if it was never set.
fn gauge(snapshots: &Snapshotter, name: &str) -> Option<(String, f64)> {
    let metrics = snapshots.snapshot().into_vec();
    let (key, .., value) = metrics.into_iter().find(|(key, ..)| key.key().name() == name)?;
    let DebugValue::Gauge(value) = value else { return None };
    let labels: Vec<_> = key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
    Some((labels.join(" "), value.0))
}

#[tokio::test]
async fn a_concurrent_call_is_counted_until_its_permit_is_dropped() {
    let server = Server::start();
    for (limiter, decided_by) in [
        (Limiter::in_memory(), DecidedBy::Backend),
        (away(|builder| builder), DecidedBy::Standby),
        (server.limiter().await, DecidedBy::Backend),
    ] {
        let recorder = DebuggingRecorder::new();
        let snapshots = recorder.snapshotter();
        let _recording = metrics::set_default_local_recorder(&recorder);
        let policy = Policy::builder("concurrent").rule(Rule::concurrency(2, HOUR)).build().unwrap();
        let subject = Subject::of("zoe");
        let decide = async || limiter.check(&policy, &subject).await.unwrap().into_result();
        let mut running = 0.0;
        let mut assert_running = |expected: f64| {
            let (labels, change) = gauge(&snapshots, "tallygate_concurrent_calls").expect("it is set");
            running += change;
            assert_eq!((labels.as_str(), running), ("policy=concurrent", expected));
        };
        let first = decide().await.unwrap();
        assert_eq!(first.decided_by(), decided_by);
        assert_running(1.0);
        let second = decide().await.unwrap();
        assert_running(2.0);
        // Neither a denial nor a peek holds a lease.
        decide().await.unwrap_err();
        drop(limiter.peek(&policy, &subject).await.unwrap());
        assert_running(2.0);
        drop(first);
        assert_running(1.0);
        drop(second);
        assert_running(0.0);
        until_found("the leases were given back", async || {
            limiter.peek(&policy, &subject).await.unwrap().report()[0].remaining() == 2
        })
        .await;
        assert_running(0.0);
    }
}

#[tokio::test(start_paused = true)]
async fn callers_that_wait_are_counted_and_so_are_those_that_are_denied_at_once_although_they_may() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let limiter = Limiter::builder().max_waiting(2).build_in_memory().unwrap();
    let policy = Policy::builder("waiting").rule(Rule::sliding_window(1, HOUR)).build().unwrap();
    let subject = Subject::of("zoe");
    assert!(limiter.check(&policy, &subject).await.unwrap().is_allowed());
    let mut waiting = [(); 2].map(|()| Box::pin(limiter.acquire(&policy, &subject).into_future()));
    assert!(timeout(Duration::ZERO, &mut waiting[0]).await.is_err());
    assert!(!limiter.check(&policy, &subject).wait(HOUR / 2).await.unwrap().is_allowed(), "it cannot be served");
    assert!(timeout(Duration::ZERO, &mut waiting[1]).await.is_err());
    assert!(!limiter.acquire(&policy, &subject).await.unwrap().is_allowed(), "two wait already");
    let refused: Vec<_> = snapshots.snapshot().into_vec();
    let of = |name: &'static str| refused.iter().filter(move |(key, ..)| key.key().name() == name);
    let mut reasons: Vec<_> = of("tallygate_waits_refused_total")
        .map(|(key, .., value)| (key.key().labels().map(|label| label.value().to_owned()).collect::<Vec<_>>(), value))
        .collect();
    reasons.sort_by(|one, other| one.0.cmp(&other.0));
    let expected =
        ["full", "late"].map(|reason| (vec!["waiting".to_owned(), reason.to_owned()], &DebugValue::Counter(1)));
    assert_eq!(reasons, expected);
    assert_eq!(of("tallygate_waiting_calls").next().map(|(.., value)| value), Some(&DebugValue::Gauge(2.0.into())));
    drop(waiting);
    assert_eq!(gauge(&snapshots, "tallygate_waiting_calls").map(|(_, change)| change), Some(-2.0));
}
