//! The gauges: overrides in force, and concurrent calls.

use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tallygate::{DecidedBy, Limiter, Policy, Rule, Subject};
use tallygate_harness::server::{Server, away};
use tallygate_harness::until::until_found;

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
async fn overrides_are_counted_while_they_are_in_force() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let limiter = Limiter::in_memory();
    let overriding = |name: &str| limiter.override_policy(name).rules([Rule::sliding_window(9, HOUR)]).allow_unknown();
    overriding("one").set().await.unwrap();
    overriding("other").set().await.unwrap();
    let overrides = || gauge(&snapshots, "tallygate_overrides").map(|(_, number)| number);
    assert_eq!(overrides(), Some(2.0));
    limiter.override_policy("one").clear().await.unwrap();
    assert_eq!(overrides(), Some(1.0));
    drop(limiter);
    assert_eq!(overrides(), Some(0.0));
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
