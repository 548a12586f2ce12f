//! The service in axum.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use escargot::CargoRun;
use reqwest::header::RETRY_AFTER;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tallygate_harness::server::Server as Redis;
use tallygate_harness::until::{until, until_found};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::built;
use crate::process::{Service, fail_to_start};
use crate::upload::Upload;

static SERVICE: LazyLock<CargoRun> = LazyLock::new(|| built::service("axum-example"));

/// How many requests go to each of two services at once.
const EACH: usize = 32;

fn start(variables: &[(&str, &str)]) -> Service {
    Service::start(&SERVICE, variables)
}

async fn code(service: &Service, email: &str) -> Response {
    service.request(Method::POST, "/codes").json(&json!({ "email": email })).send().await.unwrap()
}

async fn login(service: &Service, password: &str) -> u16 {
    let credentials = json!({ "user": "Alice", "password": password });
    service.request(Method::POST, "/login").json(&credentials).send().await.unwrap().status().as_u16()
}

async fn draw(service: &Service, user: &str) -> Response {
    service.request(Method::POST, "/lottery").header("x-user", user).send().await.unwrap()
}

async fn ask(service: &Service, user: &str, longest: u32) -> Response {
    let question = json!({ "text": "tell me a story", "longest": longest });
    service.request(Method::POST, "/answers").header("x-user", user).json(&question).send().await.unwrap()
}

async fn report(service: &Service) -> u16 {
    service.get("/report").send().await.unwrap().status().as_u16()
}

/// Sends the same request to all services at once, and returns how many were admitted; all others were limited.
async fn admitted<F>(services: [&Arc<Service>; 2], request: impl Fn(Arc<Service>) -> F) -> usize
where
    F: Future<Output = u16> + Send + 'static,
{
    let mut requests = JoinSet::new();
    for service in services.into_iter().flat_map(|service| vec![service; EACH]) {
        requests.spawn(request(Arc::clone(service)));
    }
    let statuses = requests.join_all().await;
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
    statuses.iter().filter(|status| **status == 200).count()
}

/// Takes a problem apart, whose wait is to agree with `Retry-After`: the wait in milliseconds, and the body.
async fn problem(response: Response) -> (u64, Value) {
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let seconds: u64 = response.headers()[RETRY_AFTER].to_str().unwrap().parse().unwrap();
    let body: Value = response.json().await.unwrap();
    let wait = body["retry_after_ms"].as_u64().unwrap();
    assert_eq!(wait.div_ceil(1_000), seconds);
    (wait, body)
}

#[tokio::test]
async fn two_services_on_one_redis_admit_exactly_count_together() {
    let redis = Redis::start();
    let url = redis.url();
    let (one, other) = (Arc::new(start(&[("TALLYGATE_URL", &url)])), Arc::new(start(&[("TALLYGATE_URL", &url)])));
    assert_eq!(admitted([&one, &other], async |service| report(&service).await).await, 10);
    let to_alice = async |service: Arc<Service>| code(&service, "alice@example.org").await.status().as_u16();
    assert_eq!(admitted([&one, &other], to_alice).await, 1);
}

#[tokio::test]
async fn two_services_on_their_own_memory_count_apart() {
    let (one, other) = (Arc::new(start(&[])), Arc::new(start(&[("TALLYGATE_URL", "memory://")])));
    assert_eq!(admitted([&one, &other], async |service| report(&service).await).await, 20);
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

#[tokio::test]
async fn support_sees_resets_and_raises_the_limits_of_a_mail_address() {
    let service = start(&[("ADMIN_TOKEN", "sesame")]);
    let path = "/admin/codes/alice@example.org";
    let support = |method| service.request(method, path).bearer_auth("sesame");
    let email = "alice@example.org";
    assert_eq!([code(&service, email).await.status(), code(&service, email).await.status()], [200, 429]);

    for _ in 0..2 {
        let limits: Value = support(Method::GET).send().await.unwrap().json().await.unwrap();
        assert_eq!((&limits[0]["rule"], &limits[0]["remaining"]), (&json!("1 per 1m as again"), &json!(0)));
        assert_eq!((&limits[2]["rule"], &limits[2]["remaining"]), (&json!("20 per 1h as network"), &json!(19)));
    }
    assert_eq!(support(Method::DELETE).send().await.unwrap().status(), 204);
    assert_eq!([code(&service, email).await.status(), code(&service, email).await.status()], [200, 429]);

    let raised = support(Method::PUT).body("again = 3 per 1m for 2h").send().await.unwrap();
    assert_eq!(raised.status(), 204, "{:?}", raised.text().await);
    for status in [200, 200, 429] {
        assert_eq!(code(&service, email).await.status(), status);
    }
    assert_eq!(
        [code(&service, "bob@example.org").await.status(), code(&service, "bob@example.org").await.status()],
        [200, 429]
    );
    assert_eq!(support(Method::PUT).body("again = 3 per fortnight").send().await.unwrap().status(), 400);

    assert_eq!(service.get(path).send().await.unwrap().status(), 401);
    assert_eq!(service.get(path).bearer_auth("open").send().await.unwrap().status(), 401);
    assert_eq!(start(&[]).get(path).bearer_auth("").send().await.unwrap().status(), 404, "there is no token");
}

#[tokio::test]
async fn a_request_is_unavailable_while_redis_is_away_and_served_when_it_is_back() {
    let mut redis = Redis::start();
    let service = start(&[("TALLYGATE_URL", &redis.url())]);
    redis.kill();
    let response = service.get("/report").send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers().get(RETRY_AFTER)), (503, None));
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["detail"], "the rate limit cannot be checked right now; try again later");
    assert_eq!(service.get("/health").send().await.unwrap().status(), 200, "it is exempt");

    redis.restart();
    let recovery = async { while report(&service).await != 200 {} };
    timeout(Duration::from_secs(30), recovery).await.expect("the service recovers by itself");
}

#[tokio::test]
async fn a_service_that_is_asked_to_stop_ends_well() {
    let service = start(&[]);
    assert_eq!(report(&service).await, 200);
    assert!(service.stop().success());
}

#[test]
fn a_service_that_is_set_up_wrongly_does_not_start() {
    // No server uses the first port.
    let away = "redis://127.0.0.1:1/";
    for (variable, value, named) in [
        ("TALLYGATE_URL", "reddis://127.0.0.1", "`url`"),
        ("TALLYGATE_URL", away, "`url`"),
        ("TRUSTED_PROXIES", "10.0.0.0/8,proxy", "`behind`: `proxy` is no network"),
    ] {
        let output = fail_to_start(&SERVICE, &[(variable, value)]);
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains(named), "{output:?}");
    }
}

#[tokio::test]
async fn an_answer_is_paid_by_its_tokens_also_if_its_client_goes_away_in_the_middle() {
    let redis = Redis::start();
    let url = redis.url();
    let services = [start(&[]), start(&[("TALLYGATE_URL", &url)])];
    for service in &services {
        let answer = ask(service, "alice", 3).await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert_eq!(answer.text().await.unwrap(), "data: once\n\ndata: upon\n\ndata: a\n\n");

        // More than half of the budget: while it is reserved, there is no second one.
        let mut long = ask(service, "alice", 4_000).await;
        assert!(long.chunk().await.unwrap().unwrap().starts_with(b"data: once\n\n"));
        let (_, second) = problem(ask(service, "alice", 4_000).await).await;
        assert_eq!(
            (&second["kind"], &second["detail"]),
            (&json!("concurrency"), &json!("wait until your other answer is over"))
        );
        assert_eq!(ask(service, "bob", 1).await.status(), 200);

        drop(long);
        until_found("the other answer is over and settled", async || {
            let answer = ask(service, "alice", 4_000).await;
            let status = answer.status().as_u16();
            assert!([200, 429].contains(&status), "{status}");
            status == 200
        })
        .await;
    }
}
