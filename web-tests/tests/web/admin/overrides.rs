//! To set, to look up and to clear overrides.

use reqwest::Method;
use serde_json::{Value, json};
use tallygate::Rule;

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
async fn an_override_puts_a_policy_in_shadow_with_its_rules_or_with_others() {
    let policy = codes("admin.tried");
    for service in Service::all().await {
        service.calls(&policy, "138", 3).await;
        let path = path_of(&policy, "/override");
        let set = service.done(Method::PUT, &path, r#"{"shadow":true,"for":"2h"}"#).await;
        assert_eq!((&set["set"]["shadow"], &set["set"]["rules"]), (&json!(true), &json!([])), "{set}");
        assert!(service.call(&policy, "138").await && service.call(&policy, "138").await);
        let enforced = service.done(Method::PUT, &path, r#"{"shadow":false}"#).await;
        assert_eq!((&enforced["replaced"]["shadow"], &enforced["set"]["shadow"]), (&json!(true), &json!(false)));
        assert!(!service.call(&policy, "138").await);
        let both = service.done(Method::PUT, &path, r#"{"rules":"0 per 1h","shadow":true}"#).await;
        assert_eq!(both["set"]["rules"], json!([{ "replaces": null, "rule": "0 per 1h" }]));
        assert!(service.call(&policy, "138").await, "a closed limit in shadow");
        let one = service.mistake(Method::PUT, &path_of(&policy, "/override?phone=138"), r#"{"shadow":true}"#).await;
        assert!(one.0 == 422 && one.1.contains("hold for a whole policy"), "{one:?}");
        let mistaken = service.mistake(Method::PUT, &path, r#"{"shadow":"yes"}"#).await;
        assert_eq!(mistaken, (422, "`shadow` must be `true` or `false`".to_owned()));
        assert_eq!(service.done(Method::DELETE, &path, "").await["cleared"], both["set"]);
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

#[tokio::test]
async fn an_override_is_cleared_as_it_is_listed_whatever_has_become_of_its_policy_label_or_key() {
    let policy = codes("admin.changed");
    let old = tallygate::Subject::of("mail").and("zoe");
    for service in Service::all().await {
        service.calls(&policy, "138", 1).await;
        let (of_gone, of_policy) = (
            || service.limiter.override_policy("admin.gone").allow_unknown(),
            || service.limiter.override_policy("admin.changed").allow_unknown(),
        );
        for (stored, path, status) in [
            (of_gone(), "/policies/admin.gone/override", 404),
            (of_gone().subject(&old), "/policies/admin.gone/override?subject=mail:zoe", 404),
            (of_gone().label("host").subject(&old), "/policies/admin.gone/override/host?subject=mail:zoe", 404),
            (of_policy().label("host"), "/policies/admin.changed/override/host", 404),
            (
                of_policy().label("host").subject(&old),
                "/policies/admin.changed/override/host?subject:host=mail:zoe",
                404,
            ),
            (of_policy().subject(&old), "/policies/admin.changed/override?subject=mail:zoe", 422),
        ] {
            stored.rules(["9 per 1h".parse::<Rule>().unwrap()]).set().await.unwrap();
            let listed = service.get("/overrides").await["overrides"][0].take();
            assert_eq!(service.done(Method::DELETE, path, "").await, json!({ "cleared": listed }), "{path}");
            assert_eq!(service.get("/overrides").await, json!({ "overrides": [] }), "{path}");
            assert_eq!(service.mistake(Method::DELETE, path, "").await.0, status, "{path}");
        }
        let (_, detail) = service.mistake(Method::DELETE, "/policies/admin.chnged/override", "").await;
        assert!(detail.ends_with("; did you mean `admin.changed`?"), "{detail}");
    }
}

#[tokio::test]
async fn an_override_of_another_version_is_cleared_although_its_rules_cannot_be_read() {
    let policy = codes("admin.unreadable");
    for service in [Service::in_axum_and_redis().await, Service::in_actix_and_redis().await] {
        service.calls(&policy, "138", 1).await;
        let store = |key: &str, field: &str| {
            let server = service.server.as_ref().unwrap();
            server.ask::<()>(&format!("HSET tallygate:!{key} {field} 9"));
            server.ask::<()>("HSET tallygate:!overrides !version x");
        };
        store("policies", "admin.future");
        for (field, path, label, subject) in [
            ("admin.unreadable", "/policies/admin.unreadable/override", Value::Null, Value::Null),
            (
                "admin.unreadable:sms:138",
                "/policies/admin.unreadable/override?phone=138",
                Value::Null,
                json!("sms:138"),
            ),
            ("admin.future:1", "/policies/admin.future/override?subject=1", Value::Null, json!("1")),
        ] {
            store("overrides", field);
            assert_eq!(service.get("/overrides").await, json!({ "overrides": [] }));
            let cleared = service.done(Method::DELETE, path, "").await["cleared"].take();
            assert_eq!((&cleared["label"], &cleared["subject"]), (&label, &subject), "{path}: {cleared}");
            assert!(cleared["rules"].is_null() && path.contains(cleared["policy"].as_str().unwrap()), "{cleared}");
        }
        let again = service.done(Method::DELETE, "/policies/admin.unreadable/override", "").await;
        assert_eq!(again, json!({ "cleared": null }));
        let (status, detail) = service.mistake(Method::GET, "/policies/admin.future/override", "").await;
        assert!(status == 422 && detail.contains("`admin.future` is listed by another version"), "{status} {detail}");
    }
}
