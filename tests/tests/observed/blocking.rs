//! Calls of functions that are not async, whose thread goes on without that of the limiter.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tallygate::{BackendErrorKind, Limiter, Policy, Rule, Subject};
use tallygate_harness::server::Server;

#[test]
fn a_plain_call_that_a_warning_holds_up_is_observed_once_as_its_caller_gets_it() {
    // The thread of the limiter has the recorder of the process. No other test here counts this policy.
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    metrics::set_global_recorder(recorder).expect("the only one of this process");
    let server = Server::start();
    let (end, ended) = mpsc::channel::<()>();
    let ended = Mutex::new(ended);
    let builder = Limiter::builder().deadline(Duration::from_millis(100)).on_warning(move |_| {
        _ = ended.lock().unwrap().recv();
    });
    let limiter = builder.connect_lazy(server.url()).unwrap();
    let policy = |name| Policy::builder(name).rule(Rule::sliding_window(2, Duration::from_secs(3_600)));
    let near = policy("held up by a warning").warn_at(0.5).build().unwrap();
    let held_up = limiter.check(&near, &Subject::of("s")).blocking_decide().unwrap_err();
    assert_eq!(held_up.kind(), BackendErrorKind::Away);
    drop(end);
    // The thread comes to this call when it is done with the other one.
    let next = policy("next").build().unwrap();
    assert!(limiter.check(&next, &Subject::of("s")).blocking_decide().unwrap().is_allowed());

    let mut decided = Vec::new();
    for (key, _, _, value) in snapshots.snapshot().into_vec() {
        let label = |name| key.key().labels().find(|label| label.key() == name).map(|label| label.value().to_owned());
        if let (Some("held up by a warning"), Some(outcome), DebugValue::Counter(calls)) =
            (label("policy").as_deref(), label("outcome"), value)
        {
            decided.push((outcome, calls));
        }
    }
    assert_eq!(decided, [("unavailable".to_owned(), 1)]);
}
