//! What a file says of requests beside their rules, in axum and in actix-web.

use std::time::Duration;

use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::{App, HttpResponse, web as actix};
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::any;
use tallygate::config::Policies;
use tallygate::{Limiter, Rule, Subject, web};
use tallygate_web_tests::Client;
use tallygate_web_tests::server::serve;

const FILE: &str = r#"
[plans]
partner = 4
paid = 100
none = 100

[policy.login]
match = { path = "/login" }
key = "{@header_x_user}"
rules = ["2 per 1m"]
refund_if = "success"
reject = { status = 403, body = "<p>not now</p>", content_type = "text/html" }

[policy."effects.partner"]
match = { path = "/partner" }
key = "partner"
rules = ["10 per 1m"]
longest_pause = "10m"

[policy.search]
match = { path = "/search" }
key = "all"
rules = ["10 per 1m"]
cost = 4
refund_if = "failure"

[policy."effects.tokens"]
match = { path = "/tokens" }
key = "all"
rules = ["10 per 1m", "1000 tokens per 1m"]
cost = { tokens = 400 }

[policy."effects.planned"]
match = { path = "/planned" }
key = "all"
rules = ["1 per 1m", "9 per 1h"]
plan = "{@header_x_plan}"
plans = { paid = 3, none = 0 }

[policy."effects.plans_by_unit"]
match = { path = "/by-unit" }
key = "{@header_x_user}"
rules = ["400 tokens per 1m", "3 per 1m"]
cost = { tokens = 400 }
plan = "{@header_x_plan}"
plans = { paid = { tokens = 800 }, partner = { calls = 1, tokens = 4_000 }, none = 5 }

[policy."effects.api"]
match = { path = "/*" }
key = "{@ip}"
rules = ["1 per 1m"]
exempt_paths = ["/health", "/assets/*"]
reject = { status = 503 }
"#;

fn limiter() -> Limiter {
    let limiter = Limiter::in_memory();
    limiter.apply(&Policies::from_toml(FILE).unwrap()).unwrap();
    limiter
}

async fn client() -> Client {
    client_of(&limiter()).await
}

async fn client_of(limiter: &Limiter) -> Client {
    let answer = async |headers: HeaderMap| {
        let status = headers.get("x-status").and_then(|status| status.to_str().ok());
        status.and_then(|status| status.parse().ok()).unwrap_or(StatusCode::OK)
    };
    Client::new(serve(Router::new().fallback(any(answer)).layer(web::limits(limiter).unwrap())).await)
}

#[tokio::test]
async fn only_failures_of_a_user_count_and_the_response_is_that_of_the_file() {
    let client = client().await;
    let login =
        async |user: &str, status: &str| client.get_with("/login", &[("x-user", user), ("x-status", status)]).await;
    for status in ["200", "401", "302", "401"] {
        assert_eq!(login("alice", status).await.status.to_string(), status);
    }
    let answer = login("alice", "200").await;
    assert_eq!((answer.status, answer.body.as_str()), (403, "<p>not now</p>"));
    assert_eq!(answer.header("content-type"), Some("text/html"));
    assert_eq!(login("zoe", "200").await.status, 200);
}

#[tokio::test]
async fn a_request_weighs_what_the_file_says_and_failures_do_not_count() {
    let client = client().await;
    let search = async |status: &str| client.get_with("/search", &[("x-status", status)]).await.status;
    assert_eq!([search("500").await, search("200").await, search("200").await], [500, 200, 200]);
    assert_eq!(search("200").await, 429);
}

#[tokio::test]
async fn a_request_costs_what_the_file_says_in_each_unit() {
    let client = client().await;
    let tokens = async || client.get_with("/tokens", &[]).await;
    assert_eq!([tokens().await.status, tokens().await.status], [200, 200]);
    let denied = tokens().await;
    assert_eq!(denied.status, 429);
    assert!(denied.body.contains("tokens"), "{}", denied.body);
}

#[tokio::test]
async fn a_request_has_the_count_of_its_plan() {
    let client = client().await;
    let planned = async |plan: &str| client.get_with("/planned", &[("x-plan", plan)]).await.status;
    assert_eq!([planned("none").await, planned("free").await, planned("free").await], [429, 200, 429]);
    assert_eq!([planned("paid").await, planned("paid").await, planned("paid").await], [200, 200, 429]);
    // A plan of all policies, which have made three calls.
    assert_eq!([planned("partner").await, planned("partner").await], [200, 429]);
}

#[tokio::test]
async fn a_plan_sets_the_counts_of_the_units_that_it_names() {
    let client = client().await;
    let admitted = async |plan: &str| {
        let fields = [("x-user", plan), ("x-plan", plan)];
        let mut admitted = 0;
        while client.get_with("/by-unit", &fields).await.status == 200 {
            admitted += 1;
        }
        admitted
    };
    assert_eq!(admitted("free").await, 1, "by the counts in the rules");
    assert_eq!(admitted("paid").await, 2, "by its tokens");
    assert_eq!(admitted("partner").await, 1, "by its calls");
    assert_eq!(admitted("none").await, 1, "one number is that of calls alone");
}

#[tokio::test]
async fn requests_of_a_subject_that_the_file_lets_be_paused_are_denied_until_then() {
    let limiter = limiter();
    let client = client_of(&limiter).await;
    let partner = async || client.get("/partner").await;
    let (policy, subject) = (Limiter::policy("effects.partner").unwrap(), Subject::of("partner"));
    assert_eq!(partner().await.status, 200);
    limiter.check(&policy, &subject).pause(Duration::from_secs(3_600)).await.unwrap();
    let paused = partner().await;
    assert_eq!((paused.status, paused.retry_after()), (503, Some(600)));
    limiter.check(&policy, &subject).resume().await.unwrap();
    assert_eq!(partner().await.status, 200);

    let other = Limiter::policy("search").unwrap();
    assert!(limiter.check(&other, &Subject::of("all")).pause(Duration::from_secs(1)).await.is_err());
}

#[test]
fn operators_see_n_where_each_request_has_the_count_of_its_plan() {
    let _limiter = limiter();
    let rules = |name: &str| Limiter::policy(name).unwrap().rules().iter().map(Rule::to_string).collect::<Vec<_>>();
    assert_eq!(rules("effects.planned"), ["n per 1m", "9 per 1h"]);
    assert_eq!(rules("effects.plans_by_unit"), ["n tokens per 1m", "n per 1m"]);
    assert_eq!(rules("effects.api"), ["1 per 1m"]);
}

#[tokio::test]
async fn exempt_paths_are_left_alone() {
    let client = client().await;
    for path in ["/health", "/assets/a", "/assets/b", "/health", "/"] {
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
    let answer = client.get("/other").await;
    assert_eq!((answer.status, answer.body.as_str()), (503, ""));
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
}

#[actix_web::test]
async fn in_actix_web_it_is_the_same() {
    let fails = async || Err::<HttpResponse, _>(actix_web::error::ErrorUnauthorized("no"));
    let app = App::new().wrap(web::limits(&limiter()).unwrap()).default_service(actix::to(fails));
    let app = init_service(app).await;
    let login = async || {
        let request = TestRequest::get().uri("/login").insert_header(("x-user", "alice")).to_request();
        call_service(&app, request).await
    };
    assert_eq!([login().await.status().as_u16(), login().await.status().as_u16()], [401, 401]);
    let denied = login().await;
    assert_eq!(denied.status().as_u16(), 403);
    assert_eq!(denied.headers().get("content-type").unwrap(), "text/html");
    assert_eq!(read_body(denied).await, "<p>not now</p>");
}
