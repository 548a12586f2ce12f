//! Metrics name rules.

use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tallygate::{Limiter, Policy, Rule, Subject};

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_denial_is_counted_by_the_name_of_its_rule_also_where_an_override_puts_another_in_its_place() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let limiter = Limiter::in_memory();
    let rules = [Rule::sliding_window(1, HOUR).named("burst"), Rule::sliding_window(10, 24 * HOUR).named("daily")];
    let policy = Policy::builder("named").rules(rules).build().unwrap();
    let denied = async || assert!(!limiter.check(&policy, &Subject::of("user")).cost(2).await.unwrap().is_allowed());
    denied().await;
    let of_one = limiter.override_policy("named").rule(0, Rule::sliding_window(1, 2 * HOUR));
    of_one.set().await.unwrap();
    denied().await;
    let of_all = limiter.override_policy("named");
    // One of another window takes the place of none of them.
    of_all.rules([Rule::sliding_window(1, 3 * HOUR)]).set().await.unwrap();
    denied().await;
    let of_all = limiter.override_policy("named");
    of_all.rules([Rule::sliding_window(1, HOUR).named("closed")]).set().await.unwrap();
    denied().await;
    limiter.override_policy("named").clear().await.unwrap();
    denied().await;
    let mut counted: Vec<_> = Vec::new();
    for (key, _, _, value) in snapshots.snapshot().into_vec() {
        let rule = key.key().labels().find(|label| label.key() == "rule").map(|label| label.value().to_owned());
        if let (Some(rule), DebugValue::Counter(count)) = (rule, value) {
            counted.push((rule, count));
        }
    }
    counted.sort();
    let of = |rule: &str, count| (rule.to_owned(), count);
    assert_eq!(counted, [of("0", 1), of("burst", 3), of("closed", 1)]);
}
