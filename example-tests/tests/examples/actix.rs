//! The service in actix-web.

use std::sync::LazyLock;

use escargot::CargoRun;
use reqwest::Method;
use serde_json::json;
use tallygate_harness::server::Server as Redis;

use crate::built;
use crate::process::Service;

static SERVICE: LazyLock<CargoRun> = LazyLock::new(|| built::service("actix-example"));

#[tokio::test]
async fn two_services_on_one_redis_share_their_limits() {
    let redis = Redis::start();
    let url = redis.url();
    let services = [(); 2].map(|()| Service::start(&SERVICE, &[("TALLYGATE_URL", &url)]));
    for (service, remaining) in services.iter().cycle().zip((0..10).rev()) {
        let answer = service.get("/").send().await.unwrap();
        let limits = answer.headers()["ratelimit"].to_str().unwrap().to_owned();
        assert!(limits.contains(&format!("\"hello.1m\";r={remaining};t=")), "{limits}");
        assert_eq!(answer.text().await.unwrap(), "hello, 127.0.0.1\n");
    }
    for service in &services {
        assert_eq!(service.get("/").send().await.unwrap().status(), 429);
    }
}

#[tokio::test]
async fn a_mail_address_gets_one_code_a_minute() {
    let service = Service::start(&SERVICE, &[]);
    let code = async |email: &str| {
        service.request(Method::POST, "/codes").json(&json!({ "email": email })).send().await.unwrap()
    };
    assert_eq!(code("alice@example.org").await.text().await.unwrap(), r#"{"sent":true}"#);
    let denied = code("ALICE@example.org ").await;
    assert_eq!((denied.status().as_u16(), denied.headers().contains_key("retry-after")), (429, true));
    let problem: serde_json::Value = denied.json().await.unwrap();
    assert!(problem["detail"].as_str().unwrap().starts_with("the code is on its way"), "{problem}");
    assert_eq!(code("bob@example.org").await.status(), 200);
}
