//! Limits may be tried out.

use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tallygate::{Limiter, Rejection, rate_limit};
use tallygate_harness::log::Log;

use crate::grammar::Runs;

#[rate_limit(name = "tried", key = "{user}", rule(count = 1, per = "1h"), shadow, limiter = limiter)]
async fn tried(user: &str, limiter: &Limiter, runs: &Runs) -> Result<u32, Rejection> {
    Ok(runs.count())
}

#[rate_limit(name = "tried", key = "{user}", rule(count = 3, per = "1h"), limiter = limiter)]
async fn in_earnest(user: &str, limiter: &Limiter) -> Result<(), Rejection> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_runs_and_is_reported_as_shadow() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let (log, _listening) = Log::listen();
    let (limiter, runs) = (Limiter::in_memory(), Runs::default());
    for run in 1..=3 {
        assert_eq!(tried("a", &limiter, &runs).await.unwrap(), run);
    }
    let reported = |line: &&String| line.contains("denied in shadow") && line.contains("policy=\"tried\"");
    assert_eq!(log.lines().iter().filter(reported).count(), 2);
    let outcomes = snapshots.snapshot().into_vec().into_iter().filter_map(|(key, _, _, value)| match value {
        DebugValue::Counter(count) => {
            let outcome = key.key().labels().find(|label| label.key() == "outcome")?;
            Some((outcome.value().to_owned(), count))
        }
        _ => None,
    });
    let mut outcomes: Vec<_> = outcomes.collect();
    outcomes.sort();
    assert_eq!(outcomes, [("allowed".to_owned(), 1), ("shadow".to_owned(), 2)]);
    // What was denied was not counted.
    in_earnest("a", &limiter).await.unwrap();
    in_earnest("a", &limiter).await.unwrap();
    in_earnest("a", &limiter).await.unwrap_err();
}

#[tokio::test]
async fn an_outage_rejects_nothing() {
    let limiter = Limiter::builder().deadline(Duration::from_millis(50));
    let limiter = limiter.connect_lazy("redis+unix:///nowhere").unwrap();
    assert_eq!(tried("a", &limiter, &Runs::default()).await.unwrap(), 1);
}

#[rate_limit(rule(count = 1, per = "1h"), shadow, refund_if = Result::is_err, skip_if = skipped, limiter = limiter)]
async fn refunded(skipped: bool, limiter: &Limiter) -> Result<bool, Rejection> {
    let _ = limiter;
    Ok(skipped)
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_permit_has_none_to_give_back() {
    let limiter = Limiter::in_memory();
    for skipped in [false, false, true] {
        assert_eq!(refunded(skipped, &limiter).await.unwrap(), skipped);
    }
}

#[rate_limit(
    name = "tried.beside",
    key = "{user}",
    rule(count = 3, per = "1h"),
    rule(count = 1, per = "1h", name = "stricter", shadow),
    rule(count = user.len() as u64, per = "1d", key = "all", shadow),
    refund_if = Result::is_err,
    limiter = limiter
)]
async fn beside(user: &str, limiter: &Limiter) -> Result<(), Rejection> {
    let _ = user;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn rules_in_shadow_are_tried_beside_those_that_are_enforced() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let limiter = Limiter::in_memory();
    for admitted in [true, true, true, false] {
        assert_eq!(beside("ab", &limiter).await.is_ok(), admitted);
    }
    let counted = snapshots.snapshot().into_vec().into_iter().filter_map(|(key, _, _, value)| match value {
        DebugValue::Counter(count) => {
            let label =
                |name| key.key().labels().find(|label| label.key() == name).map(|label| label.value().to_owned());
            Some((label("outcome")?, label("rule")?, count))
        }
        _ => None,
    });
    let mut counted: Vec<_> = counted.collect();
    counted.sort();
    let expected = [("allowed", "none", 3), ("limited", "0", 1), ("shadow", "2", 1), ("shadow", "stricter", 2)];
    assert_eq!(counted, expected.map(|(outcome, rule, count)| (outcome.to_owned(), rule.to_owned(), count)));
}
