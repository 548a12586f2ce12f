//! The authorization of a service around the routes.

use reqwest::Method;
use tallygate::Limiter;

use super::{PREFIX, Service, codes, path_of};

#[tokio::test]
async fn what_a_service_refuses_changes_nothing() {
    let policy = codes("admin.refused");
    for service in Service::all().await {
        service.calls(&policy, "138", 3).await;
        for (method, rest) in [
            (Method::GET, "/subject?phone=138"),
            (Method::DELETE, "/subject?phone=138"),
            (Method::PUT, "/override"),
            (Method::PUT, "/ban?phone=138"),
            (Method::PUT, "/pause?phone=138"),
        ] {
            let path = format!("{PREFIX}{}", path_of(&policy, rest));
            for fields in [&[][..], &[("authorization", "Bearer of nobody")]] {
                let answer = service.client.send_body(method.clone(), &path, fields, r#"{"rules":"9 per 1h"}"#).await;
                assert_eq!((answer.status, answer.body.as_str()), (401, ""), "{method} {path}");
            }
        }
        assert!(!service.call(&policy, "138").await);
    }
}

#[tokio::test]
async fn the_routes_are_guarded_as_a_whole_and_nothing_beside_them() {
    for service in
        [Service::in_axum(Limiter::in_memory(), None).await, Service::in_actix(Limiter::in_memory(), None).await]
    {
        for path in ["", "/x", "/policies", "/policies/x/subject"] {
            let answer = service.client.get(&format!("{PREFIX}{path}")).await;
            assert_eq!((answer.status, answer.body.as_str()), (401, ""), "{path}");
        }
        assert_eq!(service.client.get("/nothing").await.status, 404);
    }
}
