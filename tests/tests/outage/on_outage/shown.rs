//! Who decided is seen in the log, in metrics and in spans.

use std::collections::BTreeSet;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tallygate::OnOutage;
use tallygate_harness::log::Log;

use super::{builder, call, hourly, limiter, subject};

fn lines_with(log: &Log, parts: &[&str]) -> usize {
    log.lines().iter().filter(|line| parts.iter().all(|part| line.contains(part))).count()
}

#[tokio::test]
async fn the_log_says_what_decides_in_the_place_of_redis() {
    let (log, _listening) = Log::listen();
    let limiter = limiter(OnOutage::Local);
    let local = builder(hourly(1)).build().unwrap();
    let allow = builder(hourly(1)).on_outage(OnOutage::Allow).build().unwrap();
    assert!(call(&limiter, &local).await.is_allowed());
    assert_eq!(lines_with(&log, &["DEBUG", "decided without redis", "policy=\"on.outage\"", "decided_by=standby"]), 1);
    assert!(!call(&limiter, &local).await.is_allowed());
    assert_eq!(lines_with(&log, &["DEBUG", "denied", "rule=0", "decided_by=standby"]), 1);
    assert!(call(&limiter, &allow).await.is_allowed());
    assert_eq!(lines_with(&log, &["WARN", "redis is away; calls go by `on_outage` until it is back"]), 1);
}

#[tokio::test]
async fn metrics_say_who_decided() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let limiter = limiter(OnOutage::Local);
    let policies = [OnOutage::Local, OnOutage::Allow, OnOutage::Deny]
        .map(|on_outage| builder(hourly(2)).on_outage(on_outage).build().unwrap());
    for policy in &policies {
        for _ in 0..3 {
            let _ = limiter.check(policy, subject()).await;
        }
    }
    let mut counters = BTreeSet::new();
    for (key, _, _, value) in snapshots.snapshot().into_vec() {
        let labels: Vec<_> = key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        if let ("tallygate_decisions_total", DebugValue::Counter(count)) = (key.key().name(), value) {
            counters.insert(format!("{} {count}", labels.join(" ")));
        }
    }
    let expected = [
        "policy=on.outage rule=0 outcome=limited decided_by=standby 1",
        "policy=on.outage rule=none outcome=allowed decided_by=nobody 3",
        "policy=on.outage rule=none outcome=allowed decided_by=standby 2",
        "policy=on.outage rule=none outcome=unavailable decided_by=nobody 3",
    ];
    assert_eq!(counters.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}
