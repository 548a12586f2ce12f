//! To pause a subject because the other side of its calls has said so, and to end that.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tallygate::{Policy, Rule, Subject};

use super::{Service, codes, codes_builder, path_of};

#[tokio::test]
async fn a_subject_is_paused_for_a_time_and_no_longer_when_that_is_ended() {
    let policy = codes_builder("admin.paused").pausable().build().unwrap();
    for service in Service::all().await {
        service.calls(&policy, "139", 1).await;
        assert_eq!(service.get(&path_of(&policy, "")).await["longest_pause_ms"], 3_600_000);
        let path = path_of(&policy, "/pause?phone=138");
        let paused = service.done(Method::PUT, &path, r#"{"duration":"10m"}"#).await;
        assert_eq!(paused, json!({ "policy": "admin.paused", "paused": "sms:138", "duration_ms": 600_000 }));
        // A shorter one leaves it.
        let held = service.done(Method::PUT, &path, r#"{"duration":"1m"}"#).await;
        assert!(held["duration_ms"].as_u64().unwrap() > 60_000, "{held}");
        let peeked = service.get(&path_of(&policy, "/subject?phone=138")).await;
        assert_eq!((&peeked["admitted"], &peeked["denied"]["kind"]), (&json!(false), &json!("paused")));
        let wait = peeked["denied"]["retry_after_ms"].as_u64().unwrap();
        assert!((500_000..=600_000).contains(&wait), "{wait}");
        assert!(!service.call(&policy, "138").await && service.call(&policy, "139").await);
        let resumed = service.done(Method::DELETE, &path, "").await;
        assert_eq!(resumed, json!({ "policy": "admin.paused", "resumed": "sms:138" }));
        assert!(service.call(&policy, "138").await);
    }
}

#[tokio::test]
async fn the_subject_is_paused_that_the_policy_lets_be_paused() {
    let calls = || Rule::sliding_window(50, Duration::from_secs(60));
    let rules = Policy::builder("admin.paused-host").key("sms:{phone}").rule(calls()).rule_on("host", calls());
    let policy = rules.key_on("host", "host:{host}").pausable_on("host").build().unwrap();
    for service in Service::all().await {
        let is_allowed = async |host: &str| {
            let (phone, host) = (Subject::of("139"), Subject::from_rendered(&format!("host:{host}")).unwrap());
            service.limiter.check(&policy, &phone).subject("host", &host).await.unwrap().is_allowed()
        };
        assert!(is_allowed("a").await);
        for query in ["host=a", "subject=host:a", "subject:host=host:a"] {
            let path = path_of(&policy, &format!("/pause?{query}"));
            let paused = service.done(Method::PUT, &path, r#"{"duration":"10m"}"#).await;
            let document = json!({ "policy": "admin.paused-host", "paused": "host:a", "duration_ms": 600_000 });
            assert_eq!(paused, document, "{query}");
            assert!(!is_allowed("a").await && is_allowed("b").await, "{query}");
            let resumed = service.done(Method::DELETE, &path, "").await;
            assert_eq!(resumed, json!({ "policy": "admin.paused-host", "resumed": "host:a" }), "{query}");
            assert!(is_allowed("a").await, "{query}");
        }
        let path = path_of(&policy, "/pause?phone=139");
        let (status, detail) = service.mistake(Method::DELETE, &path, "").await;
        assert!(status == 422 && detail.contains("`phone` belongs to the main subject"), "{detail}");
    }
}

#[tokio::test]
async fn a_pause_without_an_end_or_of_a_policy_that_cannot_be_paused_is_refused() {
    let (paused, fixed) = (codes_builder("admin.mistaken-pause").pausable().build().unwrap(), codes("admin.fixed"));
    for service in Service::all().await {
        service.calls(&paused, "139", 1).await;
        service.calls(&fixed, "139", 1).await;
        let missing = r#"`duration` is missing; write it like `{"duration":"30s"}`"#;
        for (body, text) in [
            ("", missing),
            ("{}", missing),
            (r#"{"duration":"0s"}"#, "`duration` must be longer than zero; to end a pause, use `DELETE`"),
            (r#"{"duration":"2h"}"#, "`duration` must be 1h at most, which is the longest pause of the policy"),
            (r#"{"for":"10m"}"#, "`for` is unknown; the only member is `duration`"),
        ] {
            let (status, detail) = service.mistake(Method::PUT, &path_of(&paused, "/pause?phone=138"), body).await;
            assert!(status == 422 && detail.contains(text), "{body}: {status} {detail}");
        }
        for (method, body) in [(Method::PUT, r#"{"duration":"10m"}"#), (Method::DELETE, "")] {
            let (status, detail) = service.mistake(method, &path_of(&fixed, "/pause?phone=138"), body).await;
            assert!(status == 422 && detail.contains("subjects of policy `admin.fixed` cannot be paused"), "{detail}");
        }
        assert!(service.call(&paused, "138").await);
    }
}
