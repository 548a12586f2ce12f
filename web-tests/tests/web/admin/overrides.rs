//! To set, to look up and to clear overrides.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Service, codes, path_of};

#[tokio::test]
async fn an_override_without_values_is_for_the_whole_policy() {
    let policy = codes("admin.overridden");
    for service in Service::all().await {
        service.calls(&policy, "138", 3).await;
        let path = path_of(&policy, "/override");
        assert_eq!(service.get(&path).await, json!({ "override": null }));
        let set = service.done(Method::PUT, &path, r#"{"rules":"hourly = 3 per 1h","for":"2h"}"#).await;
        assert_eq!((&set["replaced"], &set["set"]["subject"]), (&Value::Null, &Value::Null));
        assert_eq!(set["set"]["rules"], json!([{ "replaces": "hourly", "rule": "3 per 1h" }]));
        let left = set["set"]["expires_in_ms"].as_u64().unwrap();
        assert!((1..=7_200_000).contains(&left), "{left}");
        assert!(service.call(&policy, "138").await && !service.call(&policy, "138").await);

        let again = service.done(Method::PUT, &path, r#"{"rules":"9 per 1h for 1h"}"#).await;
        assert_eq!(again["replaced"]["rules"], set["set"]["rules"]);
        assert_eq!(service.get(&path).await["override"]["rules"], json!([{ "replaces": null, "rule": "9 per 1h" }]));
        let cleared = service.done(Method::DELETE, &path, "").await;
        assert_eq!(cleared["cleared"]["rules"], again["set"]["rules"]);
        assert_eq!(service.done(Method::DELETE, &path, "").await, json!({ "cleared": null }));
        assert!(!service.call(&policy, "138").await);
    }
}

#[tokio::test]
async fn an_override_with_values_is_for_that_subject_alone() {
    let policy = codes("admin.raised");
    for service in Service::all().await {
        service.calls(&policy, "138", 3).await;
        service.calls(&policy, "139", 3).await;
        let set = service.done(Method::PUT, &path_of(&policy, "/override?phone=138"), r#"{"rules":"5 per 1h"}"#).await;
        assert_eq!(set["set"]["subject"], "sms:138");
        assert!(service.call(&policy, "138").await && !service.call(&policy, "139").await);
        let peeked = service.get(&path_of(&policy, "/subject?phone=138")).await;
        assert_eq!(peeked["overrides"], json!([set["set"]]));
        assert_eq!(service.get(&path_of(&policy, "/override")).await, json!({ "override": null }));
        let all = service.get("/overrides").await;
        assert_eq!(all, json!({ "overrides": [set["set"]] }));
        service.done(Method::DELETE, &path_of(&policy, "/override?phone=138"), "").await;
        assert!(!service.call(&policy, "138").await);
    }
}

#[tokio::test]
async fn an_override_behind_a_label_is_for_the_rules_on_that_subject() {
    let policy = codes("admin.network");
    for service in Service::all().await {
        service.calls(&policy, "138", 1).await;
        for (path, subject) in
            [("/override/network", Value::Null), ("/override/network?@ip=192.0.2.1", json!("192.0.2.1"))]
        {
            let path = path_of(&policy, path);
            let set = service.done(Method::PUT, &path, r#"{"rules":"0 per 1h"}"#).await;
            assert_eq!((&set["set"]["label"], &set["set"]["subject"]), (&json!("network"), &subject));
            assert!(!service.call(&policy, "139").await);
            assert_eq!(service.done(Method::DELETE, &path, "").await["cleared"], set["set"]);
        }
        let whole = path_of(&policy, "/override/network?subject=192.0.2.1");
        let set = service.done(Method::PUT, &whole, r#"{"rules":"0 per 1h"}"#).await;
        assert_eq!(set["set"]["subject"], "192.0.2.1");
    }
}
