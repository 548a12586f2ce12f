//! Numbers of a whole process, over all limiters: so these tests need one of their own, in which each number has one test.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tallygate::{Limiter, Rule};

const HOUR: Duration = Duration::from_secs(3_600);

/// A gauge without labels.
fn gauge(snapshots: &Snapshotter, name: &str) -> Option<f64> {
    let metrics = snapshots.snapshot().into_vec();
    let (key, .., value) = metrics.into_iter().find(|(key, ..)| key.key().name() == name)?;
    assert_eq!(key.key().labels().count(), 0);
    let DebugValue::Gauge(value) = value else { return None };
    Some(value.0)
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
    let overrides = || gauge(&snapshots, "tallygate_overrides");
    assert_eq!(overrides(), Some(2.0));
    limiter.override_policy("one").clear().await.unwrap();
    assert_eq!(overrides(), Some(1.0));
    drop(limiter);
    assert_eq!(overrides(), Some(0.0));
}

#[tokio::test(start_paused = true)]
async fn a_watched_file_is_counted_while_it_is_not_in_force_and_so_are_policies_that_leave_it() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.toml");
    let sound = "[policy.gauged]\nrules = ['2 per 1h']\n";
    std::fs::write(&path, format!("{sound}[policy.other]\nrules = ['2 per 1h']")).unwrap();
    let limiter = Limiter::in_memory();
    let mut watch = limiter.watch_file(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    watch.changed().await.unwrap().unwrap_err();
    assert_eq!(gauge(&snapshots, "tallygate_unapplied_files"), Some(1.0));
    std::fs::write(&path, format!("{sound}[end]")).unwrap();
    watch.changed().await.unwrap().unwrap();
    let metrics = snapshots.snapshot().into_vec();
    let value = |name: &str| metrics.iter().find(|(key, ..)| key.key().name() == name).map(|(.., value)| value);
    assert_eq!(value("tallygate_unapplied_files"), Some(&DebugValue::Gauge(0.0.into())));
    assert_eq!(value("tallygate_lost_policies_total"), Some(&DebugValue::Counter(1)));
}
