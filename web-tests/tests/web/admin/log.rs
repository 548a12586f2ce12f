//! What the log says of changes.

use reqwest::Method;
use serde_json::json;
use tallygate::Limiter;
use tallygate_harness::log::Log;

use super::{Service, codes_builder, path_of};

#[tokio::test]
async fn each_change_is_reported_with_its_policy_and_without_its_subject() {
    let policy = codes_builder("admin.logged").pausable().build().unwrap();
    let (log, _guard) = Log::listen();
    let service = Service::in_axum(Limiter::in_memory(), None).await;
    let reported = || -> Vec<_> {
        let lines = log.lines().into_iter();
        lines.filter(|line| line.contains("INFO") && line.contains("admin.logged")).collect()
    };
    let changes = [
        (Method::DELETE, "/subject?phone=13800000000", "", "a subject was reset"),
        (Method::DELETE, "/subjects?phone=13800000000&@ip=192.0.2.1", "", "all subjects of a call were reset"),
        (Method::PUT, "/ban?phone=13800000000", "", "a subject was banned"),
        (Method::DELETE, "/ban?phone=13800000000", "", "a ban of a subject was ended, if there was one"),
        // Whether there was one is not known.
        (Method::DELETE, "/ban?phone=13800000000", "", "a ban of a subject was ended, if there was one"),
        (Method::PUT, "/pause?phone=13800000000", r#"{"duration":"1m"}"#, "a subject was paused"),
        (Method::DELETE, "/pause?phone=13800000000", "", "the pause of a subject was ended, if there was one"),
        (Method::PUT, "/override?phone=13800000000", r#"{"rules":"9 per 1h"}"#, "rules were overridden, or"),
        (Method::DELETE, "/override?phone=13800000000", "", "or an override was cleared"),
    ];
    let count = changes.len();
    for (before, (method, path, body, change)) in changes.into_iter().enumerate() {
        service.done(method, &path_of(&policy, path), body).await;
        let lines = reported();
        assert!(lines.len() == before + 1 && lines[before].contains(change), "{change}: {lines:?}");
        let is_of_routes = !path.starts_with("/override");
        assert_eq!(lines[before].contains("a change by an operator was carried out"), is_of_routes, "{lines:?}");
    }
    service.get(&path_of(&policy, "/subject?phone=13800000000")).await;
    let again = service.done(Method::DELETE, &path_of(&policy, "/override?phone=13800000000"), "").await;
    assert_eq!(again, json!({ "cleared": null }));
    assert_eq!(reported().len(), count);
    assert!(log.lines().iter().all(|line| !line.contains("13800000000") && !line.contains("192.0.2.1")));
}
