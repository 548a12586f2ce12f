//! What clients can do, each under its own limits.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tallygate_harness::server::Server as Redis;
use tallygate_harness::until::{until, until_found};
use tokio::time::timeout;

use super::{code, problem, start};
use crate::process::Service;
use crate::upload::Upload;

async fn login(service: &Service, password: &str) -> u16 {
    let credentials = json!({ "user": "Alice", "password": password });
    service.request(Method::POST, "/login").json(&credentials).send().await.unwrap().status().as_u16()
}

async fn draw(service: &Service, user: &str) -> reqwest::Response {
    service.request(Method::POST, "/lottery").header("x-user", user).send().await.unwrap()
}

#[tokio::test]
async fn a_mail_address_is_counted_however_it_is_written_and_a_denial_says_how_long_to_wait() {
    let service = start(&[]);
    let sent = code(&service, "alice@example.org").await;
    assert!(sent.headers()["ratelimit"].to_str().unwrap().contains("\"mail.code.again\";r=0;t=60"));
    assert_eq!((sent.status().as_u16(), sent.text().await.unwrap().as_str()), (200, r#"{"sent":true}"#));

    let denied = code(&service, " Alice@Example.org").await;
    assert_eq!(denied.status(), 429);
    let (wait, body) = problem(denied).await;
    assert!((1..=60_000).contains(&wait));
    assert!(body["detail"].as_str().unwrap().starts_with("the code is on its way; try again in "), "{body}");
    assert_eq!((&body["kind"], &body["violated-policies"]), (&json!("limited"), &json!(["mail.code.again"])));

    assert_eq!(code(&service, "bob@example.org").await.status(), 200);
    assert_eq!(code(&service, "nobody").await.status(), 422);
}

#[tokio::test]
async fn each_network_behind_a_proxy_has_codes_of_its_own() {
    let service = start(&[("TRUSTED_PROXIES", "127.0.0.0/8, 10.0.0.0/8")]);
    let code = async |client: &str, number: u32| {
        let body = json!({ "email": format!("{number}@example.org") });
        let request = service.request(Method::POST, "/codes").header("x-forwarded-for", client).json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    for number in 0..20 {
        assert_eq!(code(&format!("2001:db8:0:1::{number}"), number).await, 200);
    }
    assert_eq!(code("2001:db8:0:1::9999", 20).await, 429);
    assert_eq!(code("198.51.100.1, 2001:db8:0:1::9, 10.0.0.1", 20).await, 429, "a forged entry changes nothing");
    assert_eq!(code("2001:db8:0:2::1", 20).await, 200);
}

#[tokio::test]
async fn a_second_click_is_a_duplicate_and_further_clicks_lead_to_a_ban() {
    let redis = Redis::start();
    let url = redis.url();
    let (one, other) = (start(&[("TALLYGATE_URL", &url)]), start(&[("TALLYGATE_URL", &url)]));
    assert_eq!(draw(&one, "alice").await.status(), 200);
    let duplicate = draw(&other, "alice").await;
    assert_eq!(duplicate.status(), 409);
    let (wait, body) = problem(duplicate).await;
    assert!((1..=5_000).contains(&wait));
    assert_eq!((&body["kind"], &body["detail"]), (&json!("duplicate"), &json!("one click is enough, alice")));
    // One of them may be drawn after five seconds, where the machine is slow.
    let banned = async {
        loop {
            let drawn = draw(&other, "alice").await;
            if drawn.status() == 429 {
                return drawn;
            }
        }
    };
    let banned = timeout(Duration::from_secs(30), banned).await.expect("alice is banned");
    assert_eq!(problem(banned).await.1["kind"], "banned");
    assert_eq!(draw(&other, "bob").await.status(), 200);
}

#[tokio::test]
async fn only_failed_logins_count() {
    let service = start(&[]);
    for _ in 0..10 {
        assert_eq!(login(&service, "correct horse").await, 200);
    }
    for _ in 0..5 {
        assert_eq!(login(&service, "123456").await, 401);
    }
    assert_eq!([login(&service, "123456").await, login(&service, "correct horse").await], [429, 429]);
}

#[tokio::test]
async fn who_keeps_guessing_is_banned() {
    let service = start(&[]);
    let guess = async || {
        let credentials = json!({ "user": "alice", "password": "123456" });
        service.request(Method::POST, "/login").json(&credentials).send().await.unwrap()
    };
    for status in [401; 5].into_iter().chain([429; 10]) {
        assert_eq!(guess().await.status(), status);
    }
    let (wait, body) = problem(guess().await).await;
    assert_eq!(body["kind"], "banned");
    assert!((1..=3_600_000).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_user_has_one_import_running_at_a_time() {
    let redis = Redis::start();
    let url = redis.url();
    let (one, other) = (start(&[("TALLYGATE_URL", &url)]), start(&[("TALLYGATE_URL", &url)]));
    let import = async |user: &str| {
        other.request(Method::POST, "/contacts").header("x-user", user).body("carol@example.org").send().await.unwrap()
    };
    let upload = Upload::begin(&one, &[("x-user", "alice")]).await;
    until("the upload is running", || redis.ask::<u64>("ZCARD tallygate:import/leases:alice") == 1).await;
    let (wait, body) = problem(import("alice").await).await;
    assert!((1..=30_000).contains(&wait));
    assert_eq!(
        (&body["kind"], &body["detail"]),
        (&json!("concurrency"), &json!("wait until your other import is over"))
    );
    assert_eq!(import("bob").await.text().await.unwrap(), "imported: 1\n");
    let answer = upload.finish().await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nimported: 2\n"), "{answer}");
    until_found("the next import is admitted", async || import("alice").await.status() == 200).await;
}
