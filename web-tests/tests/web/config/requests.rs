//! The policies of a file limit requests, in axum and in actix-web.

use axum::Router;
use axum::body::Body;
use axum::routing::{any, get};
use bytes::Bytes;
use futures_util::stream;
use reqwest::Method;
use tallygate::config::Policies;
use tallygate::{Limiter, Subject, web};
use tallygate_harness::until::until_found;
use tallygate_web_tests::server::serve;
use tallygate_web_tests::{Client, LimitItem};
use tokio::sync::watch;

const FILE: &str = r#"
[policy."web.login"]
match = { path = ["/login", "/signup"], methods = ["POST"] }
key = "{@ip}"
rules = ["2 per 1m", { count = 3, per = "1h", key = "all" }]

[policy."web.trial"]
match = { path = "/trial" }
key = "{@ip}"
rules = ["1 per 1m"]
shadow = true

[policy."web.api"]
match = { path = "/api/*" }
key = "{@ip} {@method} {@path}"
rules = ["1 per 1m"]
"#;

fn limiter(text: &str) -> Limiter {
    let limiter = Limiter::in_memory();
    apply(&limiter, text);
    limiter
}

fn apply(limiter: &Limiter, text: &str) {
    limiter.apply(&Policies::from_toml(text).unwrap()).unwrap();
}

fn router() -> Router {
    Router::new().fallback(any(|| async { "done" }))
}

async fn client(limiter: &Limiter) -> Client {
    Client::new(serve(router().layer(web::limits(limiter).unwrap())).await)
}

async fn status(client: &Client, method: Method, path: &str) -> u16 {
    client.send(method, path, &[]).await.status
}

#[tokio::test]
async fn the_first_policy_that_matches_a_request_limits_it_and_no_other() {
    let client = client(&limiter(FILE)).await;
    assert_eq!(status(&client, Method::POST, "/login").await, 200);
    assert_eq!(status(&client, Method::POST, "/signup").await, 200);
    let denied = client.send(Method::POST, "/login", &[]).await;
    assert_eq!((denied.status, denied.problem().violated_policies), (429, vec!["web.login.1m".to_owned()]));
    assert_eq!(denied.limits(), [LimitItem { name: "web.login.1m".into(), r: 0, t: denied.retry_after() }]);
    for _ in 0..3 {
        assert_eq!(status(&client, Method::GET, "/login").await, 200, "another method");
        assert_eq!(status(&client, Method::POST, "/login/7").await, 200, "another path");
        assert_eq!(status(&client, Method::POST, "/trial").await, 200, "in shadow");
    }
}

/// What is left of the counts of these policies for the client of the tests.
async fn remaining<const N: usize>(limiter: &Limiter, policies: &Policies, names: [&str; N]) -> Vec<u64> {
    let mut left = Vec::new();
    for name in names {
        let decision = limiter.peek(&policies.policy(name).unwrap(), &Subject::of("127.0.0.1")).await.unwrap();
        left.push(decision.report()[0].remaining());
    }
    left
}

#[tokio::test]
async fn policies_in_shadow_are_decided_beside_the_one_that_is_enforced_wherever_they_stand() {
    const NAMES: [&str; 3] = ["tried.first", "tried.enforced", "tried.last"];
    let table = |name: &str, count: u32, shadow: &str| {
        format!("[policy.'{name}']\nmatch = {{ path = '/*' }}\nkey = '{{@ip}}'\nrules = ['{count} per 1m']\n{shadow}\n")
    };
    let first = table("tried.first", 1, "shadow = true");
    let enforced = table("tried.enforced", 2, "");
    let last = table("tried.last", 9, "shadow = true\nrefund_if = 'failure'");
    for file in [[&first, &enforced, &last], [&enforced, &first, &last], [&last, &first, &enforced]] {
        let policies = Policies::from_toml(file.map(String::as_str).concat()).unwrap();
        let limiter = Limiter::in_memory();
        limiter.apply(&policies).unwrap();
        let client = client(&limiter).await;
        for (expected, left) in [(200, [0, 1, 8]), (200, [0, 0, 7]), (429, [0, 0, 7])] {
            let response = client.get("/").await;
            assert_eq!(response.status, expected, "{file:?}");
            assert_eq!(remaining(&limiter, &policies, NAMES).await, left, "{file:?}");
            let named: Vec<_> = response.limits().into_iter().map(|item| item.name).collect();
            assert!(named.iter().all(|name| name.starts_with("tried.enforced.")), "{named:?}");
        }
    }
}

#[tokio::test]
async fn rules_that_an_override_puts_in_shadow_leave_the_limit_behind_them_in_force() {
    let file = "[policy.first]\nmatch = { path = '/api/*' }\nkey = '{@ip}'\nrules = ['1 per 1m']\n\
         [policy.behind]\nmatch = { path = '/*' }\nkey = '{@ip}'\nrules = ['2 per 1m']";
    for is_of_one_subject in [false, true] {
        let limiter = self::limiter(file);
        let overriding = limiter.override_policy("first");
        let overriding = if is_of_one_subject { overriding.subject(&Subject::of("127.0.0.1")) } else { overriding };
        overriding.text("9 per 1m shadow").set().await.unwrap();
        let client = client(&limiter).await;
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(status(&client, Method::GET, "/api/a").await);
        }
        assert_eq!(statuses, [200, 200, 429], "{is_of_one_subject}");
    }
    // Rules of an override that are enforced decide alone.
    let limiter = self::limiter(&file.replace("'1 per 1m'", "'1 per 1m shadow'"));
    limiter.override_policy("first").text("3 per 1m").set().await.unwrap();
    let client = client(&limiter).await;
    for expected in [200, 200, 200, 429] {
        assert_eq!(status(&client, Method::GET, "/api/a").await, expected);
    }
}

#[tokio::test]
async fn a_path_that_a_policy_in_shadow_exempts_is_limited_by_the_one_that_is_enforced() {
    let limiter = limiter(
        "[policy.tries]\nmatch = { path = '/*' }\nkey = '{@ip}'\nrules = ['9 per 1m']\nshadow = true\nexempt_paths = ['/a']\n\
         [policy.holds]\nmatch = { path = '/*' }\nkey = '{@ip}'\nrules = ['1 per 1m']",
    );
    let client = client(&limiter).await;
    assert_eq!([status(&client, Method::GET, "/a").await, status(&client, Method::GET, "/a").await], [200, 429]);
}

#[tokio::test]
async fn a_pattern_matches_all_paths_that_begin_like_it() {
    let client = client(&limiter(FILE)).await;
    for (method, path, expected) in [
        (Method::GET, "/api/a", 200),
        (Method::GET, "/api/a", 429),
        (Method::POST, "/api/a", 200),
        (Method::GET, "/api/b/c", 200),
        (Method::OPTIONS, "/api/a", 200),
        (Method::OPTIONS, "/api/a", 429),
        (Method::GET, "/api", 200),
        (Method::GET, "/api", 200),
    ] {
        assert_eq!(status(&client, method.clone(), path).await, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn preflights_are_left_alone_unless_the_program_or_the_file_says_otherwise() {
    let file = |methods: &str| {
        format!("policy.ahead = {{ match = {{ path = '/*'{methods} }}, key = '{{@ip}}', rules = ['1 per 1m'] }}")
    };
    let ahead = [("origin", "https://shop.example"), ("access-control-request-method", "GET")];
    let limits = |methods: &str| web::limits(&limiter(&file(methods))).unwrap();
    for (limits, fields, expected) in [
        (limits(""), &ahead[..], 200),
        (limits(""), &[], 429),
        (limits(", methods = ['OPTIONS']"), &ahead, 429),
        (limits("").with_options_requests(), &ahead, 429),
    ] {
        let client = Client::new(serve(router().layer(limits)).await);
        for expected in [200, expected] {
            assert_eq!(client.send(Method::OPTIONS, "/", fields).await.status, expected, "{fields:?}");
        }
    }
}

#[tokio::test]
async fn head_is_limited_together_with_get() {
    let file = |method: &str| {
        format!(
            "policy.read = {{ match = {{ path = '/*', methods = ['{method}'] }}, key = '{{@ip}}', rules = ['1 per 1m'] }}"
        )
    };
    for (limited, expected) in [("GET", [200, 429, 429]), ("HEAD", [200, 200, 429])] {
        let client = client(&limiter(&file(limited))).await;
        for (method, expected) in [Method::HEAD, Method::GET, Method::HEAD].into_iter().zip(expected) {
            assert_eq!(status(&client, method.clone(), "/").await, expected, "{method} where {limited} is limited");
        }
    }
}

#[tokio::test]
async fn another_file_limits_the_next_request_and_keeps_what_was_counted() {
    let limiter = limiter("policy.reload = { match = { path = '/*' }, key = '{@ip}', rules = ['1 per 1m'] }");
    let client = client(&limiter).await;
    assert_eq!([status(&client, Method::GET, "/").await, status(&client, Method::GET, "/").await], [200, 429]);
    apply(&limiter, "policy.reload = { match = { path = '/*' }, key = '{@ip}', rules = ['2 per 1m'] }");
    assert_eq!([status(&client, Method::GET, "/").await, status(&client, Method::GET, "/").await], [200, 429]);
    apply(&limiter, "");
    assert_eq!(status(&client, Method::GET, "/").await, 200);
}

#[tokio::test]
async fn an_override_goes_before_the_file() {
    let limiter = limiter("policy.over = { match = { path = '/*' }, key = '{@ip}', rules = ['1 per 1m'] }");
    limiter.override_policy("over").text("3 per 1m").set().await.unwrap();
    let client = client(&limiter).await;
    for expected in [200, 200, 200, 429] {
        assert_eq!(status(&client, Method::GET, "/").await, expected);
    }
}

#[tokio::test]
async fn a_request_of_a_limit_on_concurrent_calls_counts_until_its_response_was_sent() {
    let text = "policy.export = { match = { path = '/export/*' }, key = '{@ip}', rules = ['2 concurrent lease 30s'] }";
    // A response goes on until the test says so.
    let (over, is_over) = watch::channel(false);
    let export = get(async move || {
        let mut is_over = is_over.clone();
        Body::from_stream(stream::once(async move {
            is_over.wait_for(|is_over| *is_over).await.map(|_| Bytes::from("all of it"))
        }))
    });
    let router = Router::new().route("/export/{name}", export).route("/", any(|| async { "done" }));
    let client = Client::new(serve(router.layer(web::limits(&limiter(text)).unwrap())).await);
    let begin = async |path: &str| client.request(Method::GET, path, &[]).send().await.unwrap();
    let running = [begin("/export/a").await, begin("/export/b").await];

    let denied = client.get("/export/c").await;
    assert_eq!((denied.status, denied.problem().kind.as_str()), (429, "concurrency"));
    assert_eq!(denied.problem().violated_policies, ["export.concurrency"]);
    assert_eq!(status(&client, Method::GET, "/").await, 200, "another path");

    over.send(true).unwrap();
    for response in running {
        assert_eq!((response.status().as_u16(), response.text().await.unwrap().as_str()), (200, "all of it"));
    }
    until_found("the requests are over", async || client.get("/export/d").await.status == 200).await;
}

#[tokio::test]
async fn exempt_requests_are_left_alone() {
    let limiter = limiter("policy.exempt = { match = { path = '/*' }, key = '{@ip}', rules = ['1 per 1m'] }");
    let limits = web::limits(&limiter).unwrap();
    let robots = limits.clone().exempt_if(|parts| parts.header("x-robot").is_some());
    let client_one = Client::new(serve(router().layer(robots)).await);
    for _ in 0..3 {
        assert_eq!(client_one.get_with("/", &[("x-robot", "1")]).await.status, 200);
    }
    let client_two = Client::new(serve(router().layer(limits.exempt_addresses(["127.0.0.0/8"]).unwrap())).await);
    for _ in 0..3 {
        assert_eq!(status(&client_two, Method::GET, "/").await, 200);
    }
    assert_eq!([status(&client_one, Method::GET, "/").await, status(&client_one, Method::GET, "/").await], [200, 429]);
}

#[test]
fn a_router_is_not_left_unlimited_because_no_file_was_applied() {
    let error = web::limits(&Limiter::in_memory()).unwrap_err().to_string();
    assert!(error.contains("has applied no policies of a file; call `limiter.apply(&policies)?` before"), "{error}");
}

#[actix_web::test]
async fn in_actix_web_it_is_a_middleware() {
    use actix_web::test::{TestRequest, call_service, init_service};
    use actix_web::{App, web as actix};

    let limits = web::limits(&limiter(FILE)).unwrap();
    let app = App::new().wrap(limits).default_service(actix::to(async || "done"));
    let app = init_service(app).await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let request = TestRequest::post().uri("/login").peer_addr(([127, 0, 0, 1], 7).into()).to_request();
        statuses.push(call_service(&app, request).await.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
    let request = TestRequest::get().uri("/login").peer_addr(([127, 0, 0, 1], 7).into()).to_request();
    assert_eq!(call_service(&app, request).await.status().as_u16(), 200);
}
