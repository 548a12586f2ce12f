//! The small services, which do the same in axum and in actix-web.

use std::sync::LazyLock;

use escargot::CargoRun;
use reqwest::Method;
use serde_json::json;
use tallygate_harness::server::Server as Redis;

use crate::built;
use crate::process::Service;

static EXAMPLES: LazyLock<[CargoRun; 2]> = LazyLock::new(|| ["axum-example", "actix-example"].map(built::service));

#[tokio::test]
async fn services_of_both_frameworks_share_their_limits_on_one_redis() {
    let redis = Redis::start();
    let url = redis.url();
    let services = EXAMPLES.each_ref().map(|example| Service::start(example, &[("TALLYGATE_URL", &url)]));
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
    for example in &*EXAMPLES {
        let service = Service::start(example, &[]);
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
}
