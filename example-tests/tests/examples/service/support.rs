//! What support can do.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{code, start};
use crate::process::Service;

const EMAIL: &str = "alice@example.org";

fn support(service: &Service, method: Method, what: &str) -> RequestBuilder {
    let path = format!("/admin/limits/policies/mail.code/{what}?email={EMAIL}");
    service.request(method, &path).bearer_auth("sesame")
}

/// Asks twice for a code.
async fn twice(service: &Service, email: &str) -> [u16; 2] {
    [code(service, email).await.status().as_u16(), code(service, email).await.status().as_u16()]
}

#[tokio::test]
async fn support_sees_resets_and_raises_the_limits_of_a_mail_address() {
    let service = start(&[("ADMIN_TOKEN", "sesame")]);
    assert_eq!(twice(&service, EMAIL).await, [200, 429]);

    for _ in 0..2 {
        let seen: Value = support(&service, Method::GET, "subject").send().await.unwrap().json().await.unwrap();
        let rules = seen["rules"].as_array().unwrap();
        let again = rules.iter().find(|rule| rule["name"] == "again").unwrap_or_else(|| panic!("{seen}"));
        assert_eq!((&seen["admitted"], &again["remaining"]), (&json!(false), &json!(0)), "{seen}");
    }
    assert!(support(&service, Method::DELETE, "subject").send().await.unwrap().status().is_success());
    assert_eq!(twice(&service, EMAIL).await, [200, 429]);

    let raise = async |rules: &str| {
        let request = support(&service, Method::PUT, "override").json(&json!({ "rules": rules, "for": "2h" }));
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(raise("again = 3 per 1m").await, 200);
    assert_eq!(twice(&service, EMAIL).await, [200, 200]);
    assert_eq!(twice(&service, EMAIL).await, [429, 429]);
    assert_eq!(twice(&service, "bob@example.org").await, [200, 429]);
    assert_eq!(raise("again = 3 per fortnight").await, 422);
}

#[tokio::test]
async fn support_can_close_the_limit_of_all_requests_and_open_it_again() {
    let service = start(&[("ADMIN_TOKEN", "sesame")]);
    let path = "/admin/limits/policies/api/override";
    let request = |method: Method| service.request(method, path).bearer_auth("sesame");
    let served = async || service.get("/report").send().await.unwrap().status().as_u16();
    assert_eq!(served().await, 200);
    let close = request(Method::PUT).json(&json!({ "rules": "0 per 1m" }));
    assert_eq!(close.send().await.unwrap().status(), 200);
    assert_eq!(served().await, 429);
    assert_eq!(request(Method::DELETE).send().await.unwrap().status(), 200);
    assert_eq!(served().await, 200);
}

#[tokio::test]
async fn a_peek_does_not_deny_who_has_a_plan_by_the_count_of_those_who_have_none() {
    let service = start(&[("ADMIN_TOKEN", "sesame")]);
    let path = "/admin/limits/policies/api/subject?@user|@ip=user:carol";
    for _ in 0..301 {
        assert_eq!(service.get("/search").header("x-user", "carol").send().await.unwrap().status(), 200);
    }
    let seen: Value = service.get(path).bearer_auth("sesame").send().await.unwrap().json().await.unwrap();
    let rule = &seen["rules"][0];
    assert_eq!(
        (&seen["admitted"], &rule["rule"], &rule["used"]),
        (&Value::Null, &json!("n per 1m"), &json!(301)),
        "{seen}"
    );
    for (plan, admitted) in [("free", false), ("paid", true)] {
        let path = format!("{path}&plan={plan}");
        let seen: Value = service.get(&path).bearer_auth("sesame").send().await.unwrap().json().await.unwrap();
        assert_eq!(seen["admitted"], admitted, "{seen}");
    }
}

#[tokio::test]
async fn nobody_without_the_token_reaches_the_routes_of_support() {
    let service = start(&[("ADMIN_TOKEN", "sesame")]);
    let path = "/admin/limits/policies";
    assert_eq!(service.get(path).bearer_auth("sesame").send().await.unwrap().status(), 200);
    assert_eq!(service.get(path).send().await.unwrap().status(), 401);
    assert_eq!(service.get(path).bearer_auth("open").send().await.unwrap().status(), 401);
    assert_eq!(service.get("/nothing").send().await.unwrap().status(), 404, "it is none of them");
    assert_eq!(start(&[]).get(path).bearer_auth("").send().await.unwrap().status(), 404, "there is no token");
}

#[tokio::test]
async fn the_document_of_the_service_has_what_clients_and_support_can_do() {
    let document: Value = start(&[]).get("/openapi.json").send().await.unwrap().json().await.unwrap();
    let statuses = |path: &str, method: &str| {
        let responses = document["paths"][path][method]["responses"].as_object().unwrap_or_else(|| panic!("{path}"));
        responses.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(statuses("/codes", "post"), ["200", "429", "503"]);
    assert_eq!(statuses("/login", "post"), ["200", "401", "429", "503"]);
    assert_eq!(statuses("/lottery", "post"), ["200", "409", "429", "503"]);
    assert_eq!(statuses("/answers", "post"), ["200", "429", "503"]);
    for (path, method) in [
        ("subject", "get"),
        ("subject", "delete"),
        ("ban", "put"),
        ("ban", "delete"),
        ("pause", "put"),
        ("override", "put"),
    ] {
        let statuses = statuses(&format!("/admin/limits/policies/{{name}}/{path}"), method);
        assert!(statuses.iter().any(|status| status == "422"), "{path} {method}: {statuses:?}");
    }
}
