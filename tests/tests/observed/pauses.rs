//! Pauses are counted, whoever asks for them.

use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tallygate::{Limiter, Policy, Rule, Subject};

const MINUTE: Duration = Duration::from_secs(60);

/// Returns the labels of the pauses that were counted since the last question, and their number.
fn pauses(snapshots: &Snapshotter) -> Vec<(String, u64)> {
    let mut pauses = Vec::new();
    for (key, _, _, value) in snapshots.snapshot().into_vec() {
        if let DebugValue::Counter(number) = value
            && key.key().name() == "tallygate_pauses_total"
        {
            let labels = key.key().labels().map(|label| format!("{}={}", label.key(), label.value()));
            pauses.push((labels.collect::<Vec<_>>().join(" "), number));
        }
    }
    pauses
}

#[tokio::test]
async fn each_pause_counts_also_one_that_changes_nothing() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (limiter, partner) = (Limiter::in_memory(), Subject::of("partner"));
    let rule = Rule::sliding_window(9, MINUTE);
    let policy = Policy::builder("partners").rule(rule.clone()).pausable().build().unwrap();
    let permit = limiter.check(&policy, &partner).await.unwrap().into_result().unwrap();
    assert_eq!(pauses(&snapshots), []);
    // Two calls hear of the same pause.
    permit.pause(MINUTE).await.unwrap();
    permit.pause(MINUTE / 2).await.unwrap();
    limiter.check(&policy, &partner).pause(MINUTE).await.unwrap();
    assert_eq!(pauses(&snapshots), [("policy=partners field=none".to_owned(), 3)]);

    permit.pause(Duration::ZERO).await.unwrap();
    let unpausable = Policy::builder("others").rule(rule).build().unwrap();
    assert!(limiter.check(&unpausable, &partner).pause(MINUTE).await.is_err());
    assert_eq!(pauses(&snapshots).iter().map(|(_, number)| number).sum::<u64>(), 0);
}
