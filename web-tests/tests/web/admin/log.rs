//! What the log says of changes.

use reqwest::Method;
use tallygate::Limiter;
use tallygate_harness::log::Log;

use super::{Service, codes, path_of};

#[tokio::test]
async fn each_change_is_reported_with_its_policy_and_without_its_subject() {
    let policy = codes("admin.logged");
    let (log, _guard) = Log::listen();
    let service = Service::in_axum(Limiter::in_memory(), None).await;
    for (method, path, body, change) in [
        (Method::DELETE, "/subject?phone=13800000000", "", "a subject was reset"),
        (Method::PUT, "/ban?phone=13800000000", "", "a subject was banned"),
        (Method::DELETE, "/ban?phone=13800000000", "", "the ban of a subject was ended"),
        (Method::PUT, "/override?phone=13800000000", r#"{"rules":"9 per 1h"}"#, "rules were overridden, or"),
    ] {
        service.done(method, &path_of(&policy, path), body).await;
        let lines = log.lines();
        let is_it = |line: &&String| line.contains("INFO") && line.contains("admin.logged") && line.contains(change);
        assert_eq!(lines.iter().filter(is_it).count(), 1, "{change}: {lines:?}");
    }
    service.get(&path_of(&policy, "/subject?phone=13800000000")).await;
    let reported = log.lines().into_iter().filter(|line| line.contains("INFO") && line.contains("admin.logged"));
    assert_eq!(reported.count(), 4);
    assert!(log.lines().iter().all(|line| !line.contains("13800000000")));
}
